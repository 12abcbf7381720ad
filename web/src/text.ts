// Short texts.

/** A duration in one unit. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

// Characters that are invisible or change the direction of the text around them.
const hidden =
  /[\p{Cc}\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

const longest = 20_000;

/** Foreign text with hidden characters made visible. Line ends and tabs stay. A very long text is cut. */
export function visible(foreign: string): string {
  const cut =
    foreign.length > longest ? `${foreign.slice(0, longest)}… (${foreign.length - longest} more)` : foreign;
  return cut.replace(hidden, (c) =>
    c === "\n" || c === "\t" ? c : `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

export function oneLine(foreign: string): string {
  return visible(foreign.replaceAll(/\s+/g, " ").trim().slice(0, 500));
}

export function timeOfDay(at: string): string {
  return new Date(at).toLocaleTimeString(undefined, {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
}

export function dateAndTime(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** The directory with the home directory shortened and only its last parts. */
export function shortPath(path: string): string {
  const parts = path.split("/").filter(Boolean);
  return parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : path;
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}
