// Health, counts, live rates, what changed, and the first steps.
import { html, nothing } from '../lib/html.js'
import { get, resource } from '../lib/api.js'
import { LiveList, poll } from '../lib/watch.js'
import { link } from '../lib/router.js'
import { taste, update } from '../lib/store.js'
import { icon } from '../lib/icons.js'
import { bytes, count, quantity, short } from '../lib/format.js'
import { ago, badge, codeBlock, failure, heading, loading, spark, stateOf } from '../lib/widgets.js'
import { metricsOf, rates } from '../lib/metrics.js'
import { readHealth } from './system.js'

const pageOf = { MessagingCluster: 'clusters', MessagingInstance: 'instances', ServiceAccount: 'accounts', APIKey: 'keys', User: 'users', RoleBinding: 'roles' }
const words = { MessagingCluster: 'Cluster', MessagingInstance: 'Instance', ServiceAccount: 'Service account', APIKey: 'API key', User: 'User', RoleBinding: 'Role binding', ServiceAccountBinding: 'Placement', Role: 'Role' }

export default ctx => {
  const { org, signal } = ctx
  const clusters = new LiveList(resource(org, 'messagingclusters'), signal)
  const events = new LiveList(`/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(org)}/events`, signal)
  const counts = {}
  let health = null, healthError = null, quota = null
  const recent = { requests: [], traffic: [] }
  const series = metricsOf(ctx)
  const bg = { background: true, signal }
  const kinds = [['messaginginstances', 'instances', 'Instances'], ['serviceaccounts', 'accounts', 'Service accounts'], ['apikeys', 'keys', 'API keys'], ['users', 'users', 'Users']]
  poll(() => readHealth(bg).then(h => { health = h; healthError = null }, e => { if (e.name !== 'AbortError') healthError = e }).then(update), 5000, signal)
  poll(() => Promise.all(kinds.map(([plural]) => get(`${resource(org, plural)}?limit=500`, bg).then(l => {
    counts[plural] = { n: l.items.length + (l.metadata.remainingItemCount ?? 0), items: l.items }
  }, e => { if (e.status === 403) counts[plural] = { n: null, items: [] } }))).then(update), 8000, signal)
  poll(async () => {
    quota = await get(`/api/v1/namespaces/${encodeURIComponent(org)}/resourcequotas/organization`, bg)
    const used = quota.status.used
    recent.requests.push(quantity(used.requestsPerSecond))
    recent.traffic.push(quantity(used.bytesPerSecond))
    for (const list of Object.values(recent)) if (list.length > 60) list.shift()
    update()
  }, 2000, signal)

  const ready = () => clusters.items.filter(c => stateOf(c)[0] === 'ok').length
  const stat = (page, title, n, more) => html`<a class="card stat" href=${link(org, page)}><span>${title}</span><b>${n == null ? '–' : count(n)}${more ? html` <small>${more}</small>` : nothing}</b></a>`
  const rate = (title, values, text) => html`<section class="card rate"><div class="cluster"><h3>${title}</h3><span class="spacer"></span><b>${text}</b></div>${spark(values)}</section>`
  const perSecond = name => { const v = rates(series.times, series.total(name)).map(x => x ?? 0); return v.slice(-60) }

  const steps = () => {
    const used = quota?.status.used ?? {}
    const has = plural => (counts[plural]?.items.filter(o => !(o.metadata.name === 'admin' && org === 'default')).length ?? 0) > 0
    return [
      ['Make an instance', has('messaginginstances'), 'instances', 'What clusters and keys belong to'],
      ['Make a cluster', clusters.items.length > 0, 'clusters', 'Where topics live'],
      ['Make a service account', has('serviceaccounts'), 'accounts', 'Who a program is'],
      ['Make an API key', has('apikeys'), 'keys', 'What a program shows'],
      ['Produce the first message', quantity(used.storedBytes) > 0 || series.total('freshet_namespace_produced_messages_total').at(-1) > 0, 'topics', 'Create a topic and send something'],
      ['Register the first schema', quantity(used.subjects) > 0, 'schemas', 'Say what messages look like'],
    ]
  }

  return () => {
    const list = steps(), done = list.filter(s => s[1]).length
    const hidden = taste.get('steps-hidden', false)
    const known = clusters.loaded && Object.keys(counts).length && quota
    const msgIn = perSecond('freshet_namespace_produced_messages_total'), msgOut = perSecond('freshet_namespace_delivered_messages_total')
    return html`
      ${heading({ title: 'Overview', badge: healthError ? badge('bad', 'Not reachable') : health ? html`<a href=${link(org, 'system')}>${badge(health.ok ? 'ok' : 'bad', health.ok ? 'Healthy' : `${health.checks.filter(c => !c.ok).length} checks fail`)}</a>` : nothing, sub: html`Organization <b>${org}</b>` })}
      ${healthError ? failure(healthError) : nothing}
      <div class="stack big">
        <div class="stats">
          ${stat('clusters', 'Clusters', clusters.state === 'denied' ? null : clusters.items.length, clusters.items.length > ready() ? `${ready()} ready` : '')}
          ${kinds.map(([plural, page, title]) => stat(page, title, counts[plural]?.n))}
          ${quota ? html`${stat('topics', 'Topics', quantity(quota.status.used.topics))}<a class="card stat" href=${link(org, 'system', [], { tab: 'usage' })}><span>Stored</span><b>${bytes(quantity(quota.status.used.storedBytes))}</b></a>` : nothing}
        </div>
        <div class="rates">
          ${series.error?.status === 403 ? nothing : html`${rate('Messages in', msgIn, `${short(msgIn.at(-1) ?? 0)}/s`)}${rate('Messages out', msgOut, `${short(msgOut.at(-1) ?? 0)}/s`)}`}
          ${rate('Requests', recent.requests, `${short(recent.requests.at(-1) ?? 0)}/s`)}${rate('Traffic', recent.traffic, `${bytes(recent.traffic.at(-1) ?? 0)}/s`)}
        </div>
        <div class="grid">
          ${known && done < list.length && !hidden ? html`<section class="card c5"><header><h2>First steps</h2><span class="muted small">${done} of ${list.length}</span><span class="actions"><button class="link small" @click=${() => { taste.set('steps-hidden', true); update() }}>Hide</button></span></header>
            <ol class="steps">${list.map(([title, ok, page, text]) => html`<li class=${ok ? 'ok' : ''}><span class="tick" aria-hidden="true">${ok ? icon('check', 14) : nothing}</span><div><a href=${link(org, page)}>${title}</a><p>${text}</p></div><span class="visually-hidden">${ok ? 'done' : 'to do'}</span></li>`)}</ol>
            <p class="muted small lead">Or have a small living example made, which can be taken away again:</p>${codeBlock('freshet demo', 'Command')}</section>` : nothing}
          <section class="card ${known && done < list.length && !hidden ? 'c7' : ''}"><header><h2>Recent changes</h2></header>${events.state === 'loading' ? loading(4) : changes(org, events.items)}</section>
        </div>
      </div>`
  }
}

function changes(org, events) {
  const last = [...events].sort((a, b) => Date.parse(b.deprecatedLastTimestamp ?? b.metadata.creationTimestamp) - Date.parse(a.deprecatedLastTimestamp ?? a.metadata.creationTimestamp))
  const seen = new Set()
  const rows = last.filter(e => { const k = e.regarding.kind + e.regarding.name; return !seen.has(k) && seen.add(k) }).slice(0, 9)
  if (!rows.length) return html`<p class="muted">Nothing happened within the last hour.</p>`
  return html`<div class="rows-list">${rows.map(e => html`<div><span class="dot ${e.type === 'Warning' ? 'warn' : 'ok'}"></span><span class="change"><a href=${pageOf[e.regarding.kind] ? link(org, pageOf[e.regarding.kind], [e.regarding.name]) : nothing}>${e.regarding.name}</a> <span class="muted small">${words[e.regarding.kind] ?? e.regarding.kind}</span><span class="note">${e.note}</span></span><span class="spacer"></span><span class="muted small nowrap">${ago(e.deprecatedLastTimestamp ?? e.metadata.creationTimestamp)}</span></div>`)}</div>`
}
