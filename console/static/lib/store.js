// State that several parts show. Whoever changes some calls update(), and the page
// is rendered once in the next frame.
let draw = () => {}
let asked = false

/** Registers what renders the page. @param {() => void} f */
export const drawWith = f => { draw = f }

/** Has the page rendered soon. */
export function update() {
  if (asked) return
  asked = true
  const run = () => { if (asked) { asked = false; draw() } }
  requestAnimationFrame(run)
  setTimeout(run, 200) // frames stop in tabs that nobody looks at
}

const listeners = new Map()

/** Calls f on every event of a name until the signal ends. */
export function on(name, f, signal) {
  if (!listeners.has(name)) listeners.set(name, new Set())
  listeners.get(name).add(f)
  signal?.addEventListener('abort', () => listeners.get(name).delete(f))
}

/** Tells those who listen. */
export const emit = (name, value) => listeners.get(name)?.forEach(f => f(value))

/** What is remembered of a person's taste; nothing secret is ever put here. */
export const taste = {
  get: (key, otherwise) => { try { return JSON.parse(localStorage.getItem('freshet.' + key)) ?? otherwise } catch { return otherwise } },
  set: (key, value) => { try { localStorage.setItem('freshet.' + key, JSON.stringify(value)) } catch { /* private mode */ } },
}
