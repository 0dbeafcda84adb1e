// State that all modules share: the scheduled rendering, events, and preferences.
// Code that changes state calls update(), and the page is rendered once in the next frame.
let renderPage = () => {}
let scheduled = false

/** Registers the function that renders the page. @param {() => void} f */
export const setRenderer = f => { renderPage = f }

/** Schedules one rendering of the page. */
export function update() {
  if (scheduled) return
  scheduled = true
  const run = () => {
    if (!scheduled) return
    scheduled = false
    renderPage()
  }
  requestAnimationFrame(run)
  setTimeout(run, 200) // browsers run no animation frames in background tabs
}

const listeners = new Map()

/** Calls f on every event with this name until the signal aborts. */
export function on(name, f, signal) {
  if (!listeners.has(name)) listeners.set(name, new Set())
  listeners.get(name).add(f)
  signal?.addEventListener('abort', () => listeners.get(name).delete(f))
}

/** Calls the listeners of an event. */
export const emit = (name, value) => listeners.get(name)?.forEach(f => f(value))

/** The user's preferences, in localStorage. Secrets are never stored here. */
export const preferences = {
  get: (key, fallback) => {
    try {
      return JSON.parse(localStorage.getItem('freshet.' + key)) ?? fallback
    } catch {
      return fallback
    }
  },
  set: (key, value) => {
    try {
      localStorage.setItem('freshet.' + key, JSON.stringify(value))
    } catch { /* private browsing mode has no storage */ }
  },
}
