// What the pages of a cluster's data share: which cluster, calls with a token for its
// instance, names of topics, and forms.
import { html, nothing } from './html.js'
import { call, get, resource } from './api.js'
import { dataPlane } from './clusters.js'
import { frame, modal } from './dialog.js'
import { go, link, route } from './router.js'
import { taste, update } from './store.js'
export { parseTopic } from './names.js'
import { denied, empty, failure, heading } from './widgets.js'

/**
 * The open function of a page whose first name is a cluster. Without one it goes to
 * the cluster that was looked at last. The page gets ctx with `at`: dataPlane, `call`,
 * and `picker`, the choice of another cluster.
 */
export const onCluster = (page, title, open) => async ctx => {
  let clusters = [], refused = null
  try {
    clusters = (await get(resource(ctx.org, 'messagingclusters'), { background: true, signal: ctx.signal })).items
  } catch (e) {
    if (e.name === 'AbortError') throw e
    refused = e
  }
  const wanted = ctx.names[0]
  const cluster = clusters.find(c => c.metadata.name === wanted)
  if (refused) return () => html`${heading({ title })}${refused.status === 403 ? denied('clusters', refused, 'cloud.messagingclusters.list') : failure(refused, () => location.reload())}`
  if (!wanted && clusters.length) {
    const last = taste.get('cluster', '')
    const next = clusters.find(c => c.metadata.name === last) ?? clusters.find(c => c.status?.conditions?.some(x => x.type === 'Ready' && x.status === 'True')) ?? clusters[0]
    queueMicrotask(() => go(link(ctx.org, page, [next.metadata.name], Object.fromEntries(route.query)), { replace: true }))
    return () => html`${heading({ title })}<div class="skeleton"><div></div></div>`
  }
  if (!cluster) {
    return () => html`${heading({ title })}${wanted
      ? empty({ icon: 'clusters', title: 'There is no such cluster', text: `It may have been deleted, or belong to another organization than ${ctx.org}.`, href: link(ctx.org, 'clusters'), more: 'All clusters' })
      : empty({ icon: page, title: 'No cluster yet', text: `${title} are in a cluster. Make one first; it is ready within seconds.`, action: html`<a class="button primary" href=${link(ctx.org, 'clusters')}>Clusters</a>`, command: `kubectl get messagingclusters -n ${ctx.org}` })}`
  }
  taste.set('cluster', wanted)
  const at = dataPlane(cluster)
  at.call = (method, url, o) => call(method, url, { audience: at.audience, signal: ctx.signal, ...o })
  at.get = (url, o) => at.call('GET', url, o).then(r => r.data)
  at.topic = (tenant, namespace, topic, rest = '') => `${at.admin}/persistent/${[tenant, namespace, topic].map(encodeURIComponent).join('/')}${rest}`
  at.messagesOf = (tenant, namespace, topic, rest = '') => `${at.messages}/${[tenant, namespace, topic].map(encodeURIComponent).join('/')}${rest}`
  const picker = html`<label class="inline-select"><span class="muted small">cluster</span><select aria-label="Cluster" @change=${e => go(link(ctx.org, page, [e.target.value]))}>${clusters.map(c => html`<option value=${c.metadata.name} ?selected=${c.metadata.name === wanted}>${c.metadata.name}</option>`)}</select></label>`
  return open({ ...ctx, at, cluster, picker })
}

/** Something that is asked for, and again when told to. state: loading, ready, denied, failed. */
export function asked(load, { show = update } = {}) {
  const a = { state: 'loading', data: null, error: null }
  a.again = async (o = {}) => {
    try {
      a.data = await load(o)
      a.state = 'ready'
      a.error = null
    } catch (e) {
      if (e.name === 'AbortError') return a
      a.error = e
      if (a.state !== 'ready' || e.status === 403 || e.status === 404) a.state = e.status === 403 || e.status === 401 ? 'denied' : e.status === 404 ? 'gone' : 'failed'
    }
    show()
    return a
  }
  return a
}

/** The name of a topic as the stream protocol and the registry have it. */
export const streamName = t => t.tenant === 'public' && t.namespace === 'default' ? t.topic : `${t.tenant}.${t.namespace}.${t.topic}`

/** A form in a dialog. run(values) does it; what it throws is shown, and it stays open. */
export function form({ title, values = {}, view, run, action = 'Create', kind = 'primary', wide }) {
  let busy = false, error = null
  return modal(ctl => frame(ctl, title, html`<div class="stack">${failure(error)}${view(values, ctl)}</div>`,
    html`<button type="button" @click=${() => ctl.close()}>Cancel</button><button class=${kind} ?disabled=${busy}>${busy ? 'Working…' : action}</button>`,
    { submit: async e => {
      if (!e.target.reportValidity()) return
      busy = true
      error = null
      ctl.update()
      try { ctl.close((await run(values)) ?? true) } catch (err) { error = err; busy = false; ctl.update() }
    } }), { className: wide ? 'wide-box' : '' })
}

/** Lines "name=value" to an object and back. */
export function readPairs(text) {
  const out = {}
  for (const line of text.split('\n')) {
    if (!line.trim()) continue
    const i = line.indexOf('=')
    if (i < 1) throw new Error(`“${line.trim()}” is not name=value.`)
    out[line.slice(0, i).trim()] = line.slice(i + 1).trim()
  }
  return out
}

export const choice = (now, list, choose, label) => html`<div class="seg" role="group" aria-label=${label}>${list.map(([id, text]) => html`<button type="button" aria-pressed=${id === now} @click=${() => choose(id)}>${text ?? id}</button>`)}</div>`

/** What there is: loading, not allowed, gone, failed, or what show makes of it. */
export function shownOr(a, what, permission, show, loading) {
  if (a.state === 'ready') return html`${a.error ? failure(a.error, () => a.again()) : nothing}${show(a.data)}`
  if (a.state === 'denied') return denied(what, a.error, permission)
  if (a.state === 'failed' || a.state === 'gone') return failure(a.error, () => a.again())
  return loading
}
