// Reports opencode's events to agtmux: runs `agtmux hook opencode <event>` and writes the event to its stdin. Sends
// ids, types, names and questions of the agent. Never sends prompts, answers or files.

import { spawn } from "node:child_process"

const PROGRAM = "agtmux"

/** A hook that runs longer than this is killed. */
const TIMEOUT_MS = 5000

/** A repeated status is sent again only after this time. */
const REPEAT_AFTER_MS = 60_000

/** The maximum depth of nested subagents. */
const MAX_DEPTH = 8

/** Marks the first opencode in a pane. An opencode started by it inherits the mark and reports nothing. */
const MARK = "AGTMUX_OPENCODE"

function isInsideAnother() {
  const here = `${process.env.TMUX ?? ""} ${process.env.TMUX_PANE ?? ""}`
  const mark = `${process.pid} ${here}`
  const inherited = process.env[MARK]
  if (inherited && inherited !== mark && inherited.endsWith(` ${here}`)) return true
  process.env[MARK] = mark
  return false
}

/** Runs a hook. Resolves when it has ended or failed. */
function hook(name, payload) {
  return new Promise((resolve) => {
    const child = spawn(PROGRAM, ["hook", "opencode", name], { stdio: ["pipe", "ignore", "ignore"] })
    const late = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS)
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

/** The fields to send for an event; undefined for events that are not reported. */
function excerpt({ type, properties: it }) {
  switch (type) {
    case "session.status":
      // "session.idle" reports the idle status.
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
  /** The parent of each session, or null. */
  const parents = new Map()
  /** The last report of each session, and its time. */
  const lastReports = new Map()
  let turn = Promise.resolve()

  /** Fails if opencode does not return the session: the parent must not be guessed. */
  async function parentOf(session) {
    if (!parents.has(session)) {
      const request = { path: { id: session }, signal: AbortSignal.timeout(TIMEOUT_MS) }
      const response = await client.session.get(request)
      if (!response?.data) throw new Error("opencode did not return the session")
      parents.set(session, response.data.parentID ?? null)
    }
    return parents.get(session)
  }

  /** The top session, which the user talks to. Subagents have their own sessions. */
  async function topOf(session) {
    let top = session
    for (let depth = 0; depth < MAX_DEPTH; depth++) top = (await parentOf(top)) ?? top
    return top
  }

  async function report(name, session, payload) {
    const top = await topOf(session)
    await hook(name, { session_id: top, child_id: top === session ? undefined : session, ...payload })
  }

  function isNew(session, content) {
    const last = lastReports.get(session)
    const repeats = last?.content === content && Date.now() - last.at < REPEAT_AFTER_MS
    if (!repeats) lastReports.set(session, { content, at: Date.now() })
    return !repeats
  }

  function handle(event) {
    const { info, sessionID: session } = event.properties
    if (event.type === "session.created" || event.type === "session.updated") parents.set(info.id, info.parentID ?? null)
    const payload = excerpt(event)
    if (!payload || !session || !isNew(session, JSON.stringify([event.type, payload]))) return
    // One at a time, in order.
    turn = turn.then(() => report(event.type, session, payload)).catch(() => {})
  }

  return {
    event: async ({ event }) => {
      // An error here must not affect the agent.
      try {
        handle(event)
      } catch {}
    },
  }
}
