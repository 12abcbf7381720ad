// Builds the dashboard.
//
//   node build.mjs           build dist/
//   node build.mjs --types   only generate src/api/schema.ts from the OpenAPI document
//   node build.mjs --tests   bundle the unit tests into dist-tests/

import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { typesOf } from "./types.mjs";

const maxBundleBytes = 100 * 1000;
const contract = "../crates/agtmux-api/schema/openapi.json";

writeFileSync("src/api/schema.ts", typesOf(JSON.parse(readFileSync(contract, "utf8"))));

if (process.argv.includes("--types")) process.exit();

if (process.argv.includes("--tests")) {
  const tests = readdirSync("test")
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${name}`);
  rmSync("dist-tests", { recursive: true, force: true });
  await build({
    entryPoints: tests,
    bundle: true,
    platform: "node",
    format: "esm",
    outdir: "dist-tests",
    outExtension: { ".js": ".mjs" },
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
  });
  process.exit();
}

mkdirSync("dist", { recursive: true });
for (const name of readdirSync("dist")) {
  if (name !== ".gitignore") rmSync(`dist/${name}`, { recursive: true });
}
await build({
  entryPoints: { dashboard: "src/main.tsx", "dashboard-style": "src/style/all.css" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022", "safari16.4"],
  outdir: "dist",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
cpSync("static", "dist", { recursive: true });
// The offline copy of the page has this name, so that a new build replaces it.
const hash = createHash("sha256");
for (const name of readdirSync("dist").sort()) hash.update(readFileSync(`dist/${name}`));
const worker = readFileSync("static/service-worker.js", "utf8");
writeFileSync("dist/service-worker.js", worker.replace("BUILD", hash.digest("hex").slice(0, 12)));

const bytes = readdirSync("dist").reduce(
  (sum, name) => sum + gzipSync(readFileSync(`dist/${name}`)).length,
  0,
);
if (bytes > maxBundleBytes)
  throw new Error(`the dashboard has ${bytes} bytes after gzip, more than ${maxBundleBytes}`);
process.stdout.write(`web: built web/dist, ${(bytes / 1000).toFixed(1)} kB after gzip\n`);
