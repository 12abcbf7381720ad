// What waits for a person, the longest wait first.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { connection } from "../api/live.ts";
import type { PaneItem } from "../api/schema.ts";
import { allowNotifications, permission } from "../notifications.ts";
import { Age, agentName, Empty, PageHead, Place, StateMark } from "../parts/basics.tsx";
import { DialogPart } from "../parts/dialog.tsx";
import { Icon } from "../parts/icons.tsx";
import { agents, waiting } from "../state/fleet.ts";
import { link } from "../state/route.ts";
import { count } from "../text.ts";

/** How long a card stays after its dialog was answered, so that the cards below do not jump under a finger. */
const lingering = 4000;

interface Card {
  item: PaneItem;
  answered: boolean;
}

const cardKey = (item: PaneItem) => `${item.runtime_id}`;

/** The waiting agents, and those that have just been answered, each in its place. */
export function nextCards(before: Card[], now: PaneItem[]): Card[] {
  const current = new Map(now.map((item) => [cardKey(item), item]));
  const kept = before.map((card): Card => {
    const item = current.get(cardKey(card.item));
    current.delete(cardKey(card.item));
    return item ? { item, answered: false } : { item: card.item, answered: true };
  });
  return [...kept, ...[...current.values()].map((item) => ({ item, answered: false }))];
}

export function InboxPage() {
  const cards = useRef<Card[]>([]);
  const swept = useSignal(0);
  const movedAt = useRef(0);
  swept.value;
  const before = cards.current;
  cards.current = nextCards(before, waiting.value);
  if (before.length !== cards.current.length) movedAt.current = performance.now();
  const hasAnswered = cards.current.some((card) => card.answered);
  useEffect(() => {
    if (!hasAnswered) return;
    const timer = setTimeout(() => {
      cards.current = cards.current.filter((card) => !card.answered);
      movedAt.current = performance.now();
      swept.value += 1;
    }, lingering);
    return () => clearTimeout(timer);
  }, [hasAnswered, swept]);

  const waits = waiting.value.length;
  return (
    <>
      <PageHead title="Inbox">
        <NotifyButton />
      </PageHead>
      <p class="visually-hidden" role="status">
        {waits === 0
          ? "No agent waits for you"
          : `${count(waits, "agent")} ${waits === 1 ? "waits" : "wait"} for you`}
      </p>
      {cards.current.map((card) => (
        <InboxCard key={cardKey(card.item)} card={card} movedAt={movedAt} />
      ))}
      {cards.current.length === 0 && <NothingWaits />}
    </>
  );
}

function NothingWaits() {
  const others = agents.value.length;
  if (connection.value.state === "connecting") return <Empty icon="inbox" title="Connecting…" />;
  return (
    <Empty icon="check" title="Nothing waits for you">
      {others === 0 ? (
        "No agent runs in tmux. Start one in a tmux pane, and it appears here."
      ) : (
        <a href={link("agents")}>See {count(others, "agent")}</a>
      )}
    </Empty>
  );
}

function InboxCard({ card: { item, answered }, movedAt }: { card: Card; movedAt: { current: number } }) {
  return (
    <article class={`card ${answered ? "is-answered" : ""}`} data-runtime={item.runtime_id}>
      <a class="card-head" href={link("agent", item.runtime_id ?? "")}>
        <StateMark state={answered ? "completed" : item.state} />
        <span class="card-title">
          <strong>
            <bdi>{agentName(item)}</bdi>
          </strong>
          <Place item={item} />
        </span>
        {!answered && <Age since={item.since} />}
        <Icon name="next" />
      </a>
      {answered ? (
        <p class="answered">
          <Icon name="check" /> Answered
        </p>
      ) : item.dialog ? (
        <DialogPart item={item} dialog={item.dialog} movedAt={movedAt} />
      ) : (
        <p class="question">This agent waits. agtmux cannot read what it asks; open it to see its screen.</p>
      )}
    </article>
  );
}

function NotifyButton() {
  if (permission.value !== "default") return null;
  return (
    <button type="button" class="quiet" onClick={() => void allowNotifications()}>
      <Icon name="bell" /> Notify me
    </button>
  );
}
