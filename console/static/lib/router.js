// The URL is the state: /console/<organization>/<page>/<names…>?<filter, sort, tab…>.
import { emit, on, update } from './store.js'

const base = '/console/'

/** Where we are. Names are decoded; query values are strings. */
export const route = { org: '', page: '', names: /** @type {string[]} */ ([]), query: new URLSearchParams() }

export function parse(path, search) {
  const parts = path.startsWith(base) ? path.slice(base.length).split('/').filter(Boolean).map(decodeURIComponent) : []
  return { org: parts[0] ?? '', page: parts[1] ?? '', names: parts.slice(2), query: new URLSearchParams(search) }
}

/** The URL of a view. Query values that are empty are left out. */
export function link(org, page, names = [], query = {}) {
  const q = new URLSearchParams(Object.entries(query).filter(([, v]) => v != null && v !== ''))
  return base + [org, page, ...names].map(encodeURIComponent).join('/') + (q.size ? '?' + q : '')
}

function read() {
  Object.assign(route, parse(location.pathname, location.search))
  emit('route')
  update()
}

export function go(url, { replace = false } = {}) {
  if (url !== location.pathname + location.search) history[replace ? 'replaceState' : 'pushState'](null, '', url)
  read()
}

/** Changes the query of this view without a step in the history. */
export function setQuery(changes) {
  const q = new URLSearchParams(location.search)
  for (const [k, v] of Object.entries(changes)) v == null || v === '' ? q.delete(k) : q.set(k, v)
  history.replaceState(null, '', location.pathname + (q.size ? '?' + q : ''))
  route.query = q
  update()
}

/** Follows links within the console without loading the page. */
export function start() {
  addEventListener('popstate', read)
  on('url', read)
  document.addEventListener('click', e => {
    const a = e.target.closest?.('a[href]')
    if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || a.target || a.hasAttribute('download')) return
    const url = new URL(a.href)
    if (url.origin !== location.origin || !url.pathname.startsWith(base)) return
    e.preventDefault()
    go(url.pathname + url.search)
    scrollTo(0, 0)
  })
  read()
}
