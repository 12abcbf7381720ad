// The hosts that agtmux watches.
import type { TargetError, TargetHealth, TargetStatus } from "../api/schema.ts";
import { Age, Empty, PageHead } from "../parts/basics.tsx";
import { agents, targetErrors, targets } from "../state/fleet.ts";
import { count, oneLine, visible } from "../text.ts";

const tones: Record<TargetHealth, string> = { ok: "completed", degraded: "waiting_input", down: "error" };
const healthNames: Record<TargetHealth, string> = {
  ok: "Connected",
  degraded: "Limited",
  down: "Not reachable",
};

export function HostsPage() {
  const errors = targetErrors.value;
  return (
    <>
      <PageHead title="Hosts" />
      <ul class="rows">
        {targets.value.map((target) => (
          <HostRow
            key={target.name}
            target={target}
            errors={errors.filter((error) => error.target === target.name)}
          />
        ))}
      </ul>
      {targets.value.length === 0 && <Empty icon="hosts" title="No hosts yet" />}
    </>
  );
}

function HostRow({ target, errors }: { target: TargetStatus; errors: TargetError[] }) {
  const here = agents.value.filter((item) => item.identity.target === target.name);
  const waits = here.filter((item) => item.needs_action).length;
  const name = target.kind === "local" ? "This machine" : target.name;
  return (
    <li class="row host">
      <span class={`state-mark state-${tones[target.health]}`} aria-hidden="true" />
      <span class="row-main">
        <span class="row-title">
          <strong>
            <bdi>{oneLine(name)}</bdi>
          </strong>
          <span class={`state-name state-${tones[target.health]}`}>{healthNames[target.health]}</span>
        </span>
        <span class="place">
          {count(here.length, "agent")}
          {waits > 0 && `, ${waits} waiting`}
          {target.agtmux_version && ` · agtmux ${oneLine(target.agtmux_version)}`}
          {target.evidence === "screen" && " · read through a shell"}
        </span>
        {target.message && <span class="row-note">{visible(target.message)}</span>}
        {target.hint && <code class="row-hint">{visible(target.hint)}</code>}
        {errors.map((error) => (
          <span class="row-note" key={`${error.server} ${error.code}`}>
            {error.server && `${oneLine(error.server)}: `}
            {visible(error.message)}
          </span>
        ))}
      </span>
      <Age since={target.since} />
    </li>
  );
}
