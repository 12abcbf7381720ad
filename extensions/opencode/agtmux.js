// Tells agtmux what opencode does: it starts `agtmux hook opencode <event>` for the few events that matter and writes
// what is known of them to its stdin. Ids, kinds, names and what is asked; no prompts, no answers, no files.

import { spawn } from "node:child_process"

const PROGRAM = "agtmux"

/** A hook ends within a fraction of a second; one that does not is ended. */
const PATIENCE = 5000

/** The same status again is news only after so long. */
const REPEAT = 60_000

/** Subagents start subagents, but not without end. */
const DEEPEST = 8

/** An opencode that another one in this pane has started is a tool of that one: it does not speak for the pane. */
const MARK = "AGTMUX_OPENCODE"

function isInsideAnother() {
  const here = `${process.env.TMUX ?? ""} ${process.env.TMUX_PANE ?? ""}`
  const mark = `${process.pid} ${here}`
  const inherited = process.env[MARK]
  if (inherited && inherited !== mark && inherited.endsWith(` ${here}`)) return true
  process.env[MARK] = mark
  return false
}

/** Resolves when the hook has ended, however it ended. */
function hook(name, payload) {
  return new Promise((resolve) => {
    const child = spawn(PROGRAM, ["hook", "opencode", name], { stdio: ["pipe", "ignore", "ignore"] })
    const late = setTimeout(() => child.kill("SIGKILL"), PATIENCE)
    late.unref()
    const ended = () => {
      clearTimeout(late)
      resolve()
    }
    child.on("error", ended)
    child.on("exit", ended)
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })
}

/** What is passed on of an event; nothing for those that do not matter. */
function excerpt({ type, properties: it }) {
  switch (type) {
    case "session.status":
      // That it is idle is an event of its own.
      return it.status.type === "idle" ? undefined : { status: it.status.type, attempt: it.status.attempt }
    case "session.idle":
      return {}
    case "session.error":
      return { error: { name: it.error?.name, message: it.error?.data?.message } }
    case "permission.asked":
      return { id: it.id, permission: it.permission, patterns: it.patterns, command: it.metadata?.command }
    case "permission.replied":
      return { id: it.requestID, reply: it.reply }
    case "question.asked":
      return { id: it.id, questions: it.questions?.map((one) => one.question) }
    case "question.replied":
    case "question.rejected":
      return { id: it.requestID }
  }
}

export const Agtmux = async ({ client }) => {
  if (isInsideAnother()) return {}
  /** The session that started a session, or null. */
  const parents = new Map()
  /** What was said last of a session, and when. */
  const said = new Map()
  let turn = Promise.resolve()

  /** Fails where opencode does not tell: whose session it is must not be guessed. */
  async function parentOf(session) {
    if (!parents.has(session)) {
      const request = { path: { id: session }, signal: AbortSignal.timeout(PATIENCE) }
      const asked = await client.session.get(request)
      if (!asked?.data) throw new Error("opencode does not tell whose session it is")
      parents.set(session, asked.data.parentID ?? null)
    }
    return parents.get(session)
  }

  /** The session that the user talks to: subagents have sessions of their own. */
  async function topOf(session) {
    let top = session
    for (let depth = 0; depth < DEEPEST; depth++) top = (await parentOf(top)) ?? top
    return top
  }

  async function tell(name, session, payload) {
    const top = await topOf(session)
    await hook(name, { session_id: top, child_id: top === session ? undefined : session, ...payload })
  }

  function isNews(session, word) {
    const last = said.get(session)
    const repeats = last?.word === word && Date.now() - last.at < REPEAT
    if (!repeats) said.set(session, { word, at: Date.now() })
    return !repeats
  }

  function hear(event) {
    const { info, sessionID: session } = event.properties
    if (event.type === "session.created" || event.type === "session.updated") parents.set(info.id, info.parentID ?? null)
    const payload = excerpt(event)
    if (!payload || !session || !isNews(session, JSON.stringify([event.type, payload]))) return
    // One after the other, in the order in which they came.
    turn = turn.then(() => tell(event.type, session, payload)).catch(() => {})
  }

  return {
    event: async ({ event }) => {
      // Whatever goes wrong here is no fault of the agent's.
      try {
        hear(event)
      } catch {}
    },
  }
}
