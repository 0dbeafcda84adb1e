// The audit log of an organization.
import { html, nothing } from '../lib/html.js'
import { can } from '../lib/perms.js'
import { route, setQuery } from '../lib/router.js'
import { table } from '../lib/table.js'
import { ago } from '../lib/timeago.js'
import { badge, denied, empty, failure, loading } from '../lib/widgets.js'

const filters = ['principal', 'surface', 'verb', 'resource', 'decision', 'requestId']
const surfaces = ['resources', 'messages', 'registry', 'stream', 'token', 'signin', 'audit', 'system', 'control']

/** The URL of the records that match the filters in the page's URL. */
export function auditQuery(org) {
  const q = new URLSearchParams({ limit: '200', organization: org })
  for (const key of [...filters, 'until']) {
    if (route.query.get(key)) q.set(key, route.query.get(key))
  }
  return `/audit/v1alpha1/records?${q}`
}

const setFilter = key => e => setQuery({ [key]: e.target.value, until: '' })

const selectFilter = (key, values) => html`
  <select aria-label=${key} @change=${setFilter(key)}>
    <option value="">any ${key}</option>
    ${values.map(v => html`<option ?selected=${v === route.query.get(key)}>${v}</option>`)}
  </select>`

const textFilter = (key, label = key) => html`
  <input aria-label=${label} placeholder=${label} .value=${route.query.get(key) ?? ''} @change=${setFilter(key)}>`

const columns = [
  {
    title: 'Action',
    text: r => `${r.verb} ${r.resource ?? ''} ${r.surface}`,
    cell: r => html`${r.verb} <span class="muted">${r.resource ?? ''}</span>`,
    width: 'minmax(0,1.1fr)',
  },
  {
    title: 'Status',
    text: r => `${r.decision} ${r.status ?? ''}`,
    cell: r => badge(r.decision === 'deny' ? 'bad' : 'ok', r.status ?? r.decision, `request ${r.requestId}`),
    width: '84px',
  },
  {
    title: 'Principal',
    text: r => r.principal ?? '',
    cell: ({ principal }) => principal
      ? html`<span title=${principal}>${principal.split('@')[0]}</span>`
      : html`<span class="muted">unknown</span>`,
    width: 'minmax(0,.8fr)',
  },
  { title: 'Time', text: r => r.time, cell: r => ago(r.time), width: '104px' },
  {
    title: 'Scope',
    text: r => r.scope ?? '',
    cell: ({ scope }) => {
      const short = (scope ?? '').replace(/^organization\/[^/]+\/?/, '')
      return html`<span class="mono small" title=${scope}>${short}</span>`
    },
    width: 'minmax(0,1.5fr)',
    wideOnly: true,
  },
  { title: 'Role', text: r => r.role ?? r.by ?? '', width: 'minmax(0,.8fr)', wideOnly: true },
]

const olderButton = until => html`
  <p class="lead"><button type="button" @click=${() => setQuery({ until })}>Older records</button></p>`

function recordsView(audit, error) {
  if (!audit) return error ? nothing : loading(6)
  if (!audit.records.length) {
    return empty({
      icon: 'activity',
      title: 'No record matches the filter',
      text: 'Writes, administrative requests and denied requests are recorded. Remove filters to see more records.',
    })
  }
  return html`
    ${table({ rows: audit.records, columns, noun: 'records', label: 'Audit log' })}
    ${audit.until ? olderButton(audit.until) : nothing}`
}

export function auditView(org, audit, error, refresh) {
  if (!can(org, 'cloud.auditrecords.list') || error?.status === 403) {
    return denied('the audit log', error, 'cloud.auditrecords.list')
  }
  return html`
    <div class="filters">
      ${selectFilter('surface', surfaces)}
      ${selectFilter('decision', ['allow', 'deny'])}
      ${textFilter('principal')}
      ${textFilter('verb')}
      ${textFilter('resource')}
      ${textFilter('requestId', 'request id')}
      <button type="button" @click=${refresh}>Refresh</button>
    </div>
    ${failure(error)}
    ${recordsView(audit, error)}`
}
