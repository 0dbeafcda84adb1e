// The overview of an organization: health, numbers, live rates, recent changes, first steps.
import { html, nothing } from '../lib/html.js'
import { get, resource } from '../lib/api.js'
import { codeBlock } from '../lib/copy.js'
import { readHealth } from '../lib/health.js'
import { LiveList, poll } from '../lib/watch.js'
import { link } from '../lib/router.js'
import { preferences, update } from '../lib/store.js'
import { icon } from '../lib/icons.js'
import { bytes, count, quantity, short } from '../lib/format.js'
import { metricsOf, rates } from '../lib/metrics.js'
import { quotaPath } from '../lib/quotas.js'
import { stateOf } from '../lib/status.js'
import { ago } from '../lib/timeago.js'
import { badge, failure, heading, loading, sparkline } from '../lib/widgets.js'

const kinds = [
  ['messaginginstances', 'instances', 'Instances'],
  ['serviceaccounts', 'accounts', 'Service accounts'],
  ['apikeys', 'keys', 'API keys'],
  ['users', 'users', 'Users'],
]

/** Title and page of the kinds in events. */
const eventKinds = {
  MessagingCluster: ['Cluster', 'clusters'],
  MessagingInstance: ['Instance', 'instances'],
  ServiceAccount: ['Service account', 'accounts'],
  APIKey: ['API key', 'keys'],
  User: ['User', 'users'],
  RoleBinding: ['Role binding', 'roles'],
  ServiceAccountBinding: ['Service account binding'],
  Role: ['Role'],
}

const produced = 'freshet_namespace_produced_messages_total'
const delivered = 'freshet_namespace_delivered_messages_total'
const maxSamples = 60

/** Polls everything that the page shows. */
function loadData({ org, signal }) {
  const data = { counts: {}, health: null, healthError: null, quota: null, requests: [], traffic: [] }
  const o = { background: true, signal }
  const loadHealth = async () => {
    try {
      data.health = await readHealth(o)
      data.healthError = null
    } catch (e) {
      if (e.name !== 'AbortError') data.healthError = e
    }
    update()
  }
  const loadCount = async ([plural]) => {
    try {
      const list = await get(`${resource(org, plural)}?limit=500`, o)
      data.counts[plural] = { n: list.items.length + (list.metadata.remainingItemCount ?? 0), items: list.items }
    } catch (e) {
      if (e.status === 403) data.counts[plural] = { n: null, items: [] }
    }
  }
  const loadQuota = async () => {
    data.quota = await get(quotaPath(org, 'organization'), o)
    const { used } = data.quota.status
    data.requests = [...data.requests, quantity(used.requestsPerSecond)].slice(-maxSamples)
    data.traffic = [...data.traffic, quantity(used.bytesPerSecond)].slice(-maxSamples)
    update()
  }
  poll(loadHealth, 5000, signal)
  poll(() => Promise.all(kinds.map(loadCount)).then(update), 8000, signal)
  poll(loadQuota, 2000, signal)
  return data
}

export default ctx => {
  const { org, signal } = ctx
  const clusters = new LiveList(resource(org, 'messagingclusters'), signal)
  const events = new LiveList(`/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(org)}/events`, signal)
  const data = loadData(ctx)
  const series = metricsOf(ctx)

  const ratesOf = name => rates(series.times, series.total(name)).map(x => x ?? 0).slice(-maxSamples)
  const steps = () => {
    const used = data.quota?.status.used ?? {}
    const hasMessages = quantity(used.storedBytes) > 0 || series.total(produced).at(-1) > 0
    const has = plural => {
      const isOwn = o => !(o.metadata.name === 'admin' && org === 'default') // the server's own account
      return data.counts[plural]?.items.some(isOwn) ?? false
    }
    return [
      ['Create an instance', has('messaginginstances'), 'instances', 'Clusters and API keys belong to an instance'],
      ['Create a cluster', clusters.items.length > 0, 'clusters', 'Topics belong to a cluster'],
      ['Create a service account', has('serviceaccounts'), 'accounts', 'The identity of a program'],
      ['Create an API key', has('apikeys'), 'keys', 'The credential of a program'],
      ['Produce the first message', hasMessages, 'topics', 'Create a topic and send a message'],
      ['Register the first schema', quantity(used.subjects) > 0, 'schemas', 'Describe the format of messages'],
    ]
  }

  return () => {
    const list = steps()
    const loaded = clusters.loaded && Object.keys(data.counts).length && data.quota
    const showSteps = loaded && list.some(([, done]) => !done) && !preferences.get('steps-hidden', false)
    return html`
      ${heading({ title: 'Overview', badge: healthBadge(org, data), sub: html`Organization <b>${org}</b>` })}
      ${failure(data.healthError)}
      <div class="stack big">
        ${numbersView(org, clusters, data)}
        ${ratesView(series.error?.status === 403, ratesOf, data)}
        <div class="grid">
          ${showSteps ? stepsView(org, list) : nothing}
          <section class="card ${showSteps ? 'c7' : ''}">
            <header><h2>Recent changes</h2></header>
            ${events.state === 'loading' ? loading(4) : changesView(org, events.items)}
          </section>
        </div>
      </div>`
  }
}

function healthBadge(org, { health, healthError }) {
  if (healthError) return badge('bad', 'Unreachable')
  if (!health) return nothing
  const failed = health.checks.filter(c => !c.ok).length
  const text = health.ok ? 'Healthy' : `${failed} ${failed === 1 ? 'check fails' : 'checks fail'}`
  return html`<a href=${link(org, 'system')}>${badge(health.ok ? 'ok' : 'bad', text)}</a>`
}

function numbersView(org, clusters, { counts, quota }) {
  const stat = (page, title, n, more) => html`
    <a class="card stat" href=${link(org, page)}>
      <span>${title}</span>
      <b>${n == null ? '–' : count(n)}${more ? html` <small>${more}</small>` : nothing}</b>
    </a>`
  const ready = clusters.items.filter(c => stateOf(c)[0] === 'ok').length
  const total = clusters.items.length
  return html`
    <div class="stats">
      ${stat('clusters', 'Clusters', clusters.state === 'denied' ? null : total, total > ready ? `${ready} ready` : '')}
      ${kinds.map(([plural, page, title]) => stat(page, title, counts[plural]?.n))}
      ${quota ? html`
        ${stat('topics', 'Topics', quantity(quota.status.used.topics))}
        <a class="card stat" href=${link(org, 'system', [], { tab: 'usage' })}>
          <span>Stored</span>
          <b>${bytes(quantity(quota.status.used.storedBytes))}</b>
        </a>` : nothing}
    </div>`
}

function ratesView(metricsDenied, ratesOf, { requests, traffic }) {
  const rate = (title, values, format) => html`
    <section class="card rate">
      <div class="cluster"><h3>${title}</h3><span class="spacer"></span><b>${format(values.at(-1) ?? 0)}/s</b></div>
      ${sparkline(values)}
    </section>`
  return html`
    <div class="rates">
      ${metricsDenied ? nothing : html`
        ${rate('Messages in', ratesOf(produced), short)}
        ${rate('Messages out', ratesOf(delivered), short)}`}
      ${rate('Requests', requests, short)}
      ${rate('Traffic', traffic, bytes)}
    </div>`
}

function stepsView(org, list) {
  const hide = () => {
    preferences.set('steps-hidden', true)
    update()
  }
  const step = ([title, done, page, text]) => html`
    <li class=${done ? 'ok' : ''}>
      <span class="tick" aria-hidden="true">${done ? icon('check', 14) : nothing}</span>
      <div><a href=${link(org, page)}>${title}</a><p>${text}</p></div>
      <span class="visually-hidden">${done ? 'done' : 'to do'}</span>
    </li>`
  return html`
    <section class="card c5">
      <header>
        <h2>First steps</h2>
        <span class="muted small">${list.filter(([, done]) => done).length} of ${list.length}</span>
        <span class="actions"><button class="link small" @click=${hide}>Hide</button></span>
      </header>
      <ol class="steps">${list.map(step)}</ol>
      <p class="muted small lead">Or create a small example with live data, which you can delete again:</p>
      ${codeBlock('freshet demo', 'Command')}
    </section>`
}

const timeOf = e => e.deprecatedLastTimestamp ?? e.metadata.creationTimestamp

/** The last event of each object, newest first. */
function lastEvents(events) {
  const seen = new Set()
  const isFirst = ({ regarding: { kind, name } }) => {
    const key = kind + name
    if (seen.has(key)) return false
    seen.add(key)
    return true
  }
  return [...events].sort((a, b) => Date.parse(timeOf(b)) - Date.parse(timeOf(a))).filter(isFirst).slice(0, 9)
}

function changesView(org, events) {
  const rows = lastEvents(events)
  if (!rows.length) return html`<p class="muted">There were no changes within the last hour.</p>`
  const row = e => {
    const { kind, name } = e.regarding
    const [title, page] = eventKinds[kind] ?? [kind]
    return html`
      <div>
        <span class="dot ${e.type === 'Warning' ? 'warn' : 'ok'}"></span>
        <span class="change">
          <a href=${page ? link(org, page, [name]) : nothing}>${name}</a>
          <span class="muted small">${title}</span>
          <span class="note">${e.note}</span>
        </span>
        <span class="spacer"></span>
        <span class="muted small nowrap">${ago(timeOf(e))}</span>
      </div>`
  }
  return html`<div class="rows-list">${rows.map(row)}</div>`
}
