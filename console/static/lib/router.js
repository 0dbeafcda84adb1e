// The URL is the state of a view: /console/<organization>/<page>/<names…>?<filter, sort, tab…>.
import { emit, on, update } from './store.js'

const base = '/console/'

/** The current view. Names are decoded; query values are strings. */
export const route = { org: '', page: '', names: /** @type {string[]} */ ([]), query: new URLSearchParams() }

export function parse(path, search) {
  const relative = path.startsWith(base) ? path.slice(base.length) : ''
  const parts = relative.split('/').filter(Boolean).map(decodeURIComponent)
  return { org: parts[0] ?? '', page: parts[1] ?? '', names: parts.slice(2), query: new URLSearchParams(search) }
}

/** The URL of a view. Empty query values are left out. */
export function link(org, page, names = [], query = {}) {
  const q = new URLSearchParams(Object.entries(query).filter(([, v]) => v != null && v !== ''))
  return base + [org, page, ...names].map(encodeURIComponent).join('/') + (q.size ? '?' + q : '')
}

function readLocation() {
  Object.assign(route, parse(location.pathname, location.search))
  emit('route')
  update()
}

/** Shows the view of a URL, without loading the document again. */
export function go(url, { replace = false } = {}) {
  if (url !== location.pathname + location.search) {
    history[replace ? 'replaceState' : 'pushState'](null, '', url)
  }
  readLocation()
}

/** Changes the query of this view without a new entry in the history. */
export function setQuery(changes) {
  const q = new URLSearchParams(location.search)
  for (const [k, v] of Object.entries(changes)) {
    if (v == null || v === '') q.delete(k)
    else q.set(k, v)
  }
  history.replaceState(null, '', location.pathname + (q.size ? '?' + q : ''))
  route.query = q
  update()
}

/** Starts the router. It handles links within the console without loading the document again. */
export function startRouter() {
  addEventListener('popstate', readLocation)
  on('url', readLocation)
  document.addEventListener('click', e => {
    const a = e.target.closest?.('a[href]')
    if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey) return
    if (a.target || a.hasAttribute('download')) return
    const url = new URL(a.href)
    if (url.origin !== location.origin || !url.pathname.startsWith(base)) return
    e.preventDefault()
    go(url.pathname + url.search)
    scrollTo(0, 0)
  })
  readLocation()
}
