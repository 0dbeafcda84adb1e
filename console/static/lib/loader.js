// Data that a page loads and can load again.
import { html, nothing } from './html.js'
import { update } from './store.js'
import { denied, failure } from './widgets.js'

/**
 * Data that load(options) returns. state: loading, ready, denied, notFound or failed. Data
 * that was loaded once stays while a later attempt fails. reload() loads it.
 */
export function loader(load) {
  const l = { state: 'loading', data: null, error: null }
  l.reload = async (options = {}) => {
    try {
      l.data = await load(options)
      l.state = 'ready'
      l.error = null
    } catch (e) {
      if (e.name === 'AbortError') return l
      l.error = e
      if (l.state !== 'ready' || e.status === 403 || e.status === 404) l.state = stateAfter(e)
    }
    update()
    return l
  }
  return l
}

function stateAfter(error) {
  if (error.status === 403 || error.status === 401) return 'denied'
  return error.status === 404 ? 'notFound' : 'failed'
}

/** The view of a loader: the placeholder while it loads, an error, or show(data). */
export function loaderView(l, what, permission, show, placeholder) {
  const retry = () => l.reload()
  if (l.state === 'ready') return html`${l.error ? failure(l.error, retry) : nothing}${show(l.data)}`
  if (l.state === 'denied') return denied(what, l.error, permission)
  if (l.state === 'failed' || l.state === 'notFound') return failure(l.error, retry)
  return placeholder
}
