// The server: health, usage, audit trail, metrics and configuration.
import { html, nothing } from '../lib/html.js'
import { call, get } from '../lib/api.js'
import { poll } from '../lib/watch.js'
import { link, route, setQuery } from '../lib/router.js'
import { table } from '../lib/table.js'
import { count } from '../lib/format.js'
import { session } from '../lib/session.js'
import { can } from '../lib/perms.js'
import { update } from '../lib/store.js'
import { ago, badge, codeBlock, copyField, copyText, denied, empty, facts, failure, heading, loading, tabOf, tabs } from '../lib/widgets.js'
import { metricsOf, parseMetrics, plotOf } from '../lib/metrics.js'
import { usage } from './clusters.js'

export default ctx => {
  const state = { group: null, health: null, version: null, build: null, quota: null, audit: null, config: null, errors: {} }
  const ask = (key, f) => f().then(v => { state[key] = v; state.errors[key] = null }, e => { if (e.name !== 'AbortError') state.errors[key] = e }).then(update)
  const bg = { background: true, signal: ctx.signal }
  poll(() => ask('health', () => readHealth(bg)), 5000, ctx.signal)
  poll(() => ask('quota', () => get(`/api/v1/namespaces/${encodeURIComponent(ctx.org)}/resourcequotas/organization`, bg)), 3000, ctx.signal)
  ask('version', () => get('/version', bg))
  const series = metricsOf(ctx)
  if (session.who?.systemAdministrator) ask('build', () => get('/system/v1alpha1/metrics', { ...bg, accept: 'text/plain' }).then(t => parseMetrics(t).find(m => m.name === 'freshet_build_info')?.labels))
  if (session.who?.systemAdministrator) poll(() => ask('group', () => get('/system/v1alpha1/members', bg)), 5000, ctx.signal)
  let auditKey = ''
  const views = () => [['health', 'Health'], ...(state.group?.members.length ? [['members', 'Members', state.group.members.length]] : []), ['metrics', 'Metrics'], ['usage', 'Quotas'], ['audit', 'Audit log'], ['config', 'Configuration']]
  const parts = {
    members: () => members(state.group, state.errors.group),
    health: () => html`${failure(state.errors.health)}${state.health ? health(state) : loading()}`,
    usage: () => state.errors.quota ? denied('quotas', state.errors.quota) : usage(state.quota),
    metrics: () => series.error ? denied('metrics', series.error, 'cloud.metrics.describe') : metrics(series),
    audit: () => {
      const query = auditQuery(ctx.org)
      if (auditKey !== query) { auditKey = query; state.audit = null; ask('audit', () => call('GET', query, { signal: ctx.signal }).then(r => r.data)) }
      return auditView(ctx.org, state, () => { auditKey = ''; update() })
    },
    config: () => {
      if (!session.who?.systemAdministrator) return denied('the configuration', { message: 'The configuration of the server is for system administrators only.' })
      if (!state.config && !state.errors.config && !state.asked) { state.asked = true; ask('config', () => get('/system/v1alpha1/configuration', { accept: 'application/yaml', signal: ctx.signal })) }
      return html`${failure(state.errors.config)}${state.config ? html`<p class="muted small lead">What is in force, with defaults. Secrets are names of files.</p>${codeBlock(state.config, 'Configuration', 'tall')}` : loading(8)}`
    },
  }
  return () => html`${heading({ title: 'System', badge: state.health ? badge(state.health.ok ? 'ok' : 'bad', state.health.ok ? 'Healthy' : 'Not ready') : nothing, sub: location.host })}${tabs(views())}${parts[tabOf(views())]()}`
}

/** The server's own checks; an answer that says "not ready" is one too. */
export async function readHealth(o) {
  let text
  try { text = await get('/readyz?verbose', { ...o, accept: '*/*', open: true }) } catch (e) { if (!e.status) throw e; text = e.message.includes('[') ? e.message : e.body?.message ?? e.message }
  const checks = [...String(text).matchAll(/^\[([+-])\](\S+) (.*)$/gm)].map(m => ({ ok: m[1] === '+', name: m[2], text: m[3] }))
  return { ok: checks.length > 0 && checks.every(c => c.ok), checks }
}

const what = { ping: 'The process answers', log: 'The log can be written', startup: 'Everything has started', clusters: 'The clusters are open and work', 'etcd-quota': 'The store of resources has room', etcd: 'The store of resources answers', 'etcd-readiness': 'The store of resources is ready', shutdown: 'It is not shutting down' }

const health = s => html`<div class="grid"><section class="card c7"><h2>Checks</h2><div class="rows-list">${s.health.checks.map(c => html`<div>${badge(c.ok ? 'ok' : 'bad', c.ok ? 'OK' : 'Failed')}<span class="mono small">${c.name}</span><span class="spacer"></span><span class="muted small hide-narrow">${what[c.name] ?? ''}</span></div>`)}</div></section>
  <section class="card c5"><h2>Server</h2>${facts([s.build && ['Version', s.build.version], s.build && ['Commit', copyText(s.build.commit.slice(0, 12))], ['API machinery', s.version?.gitVersion], ['Go', s.version?.goVersion], ['Platform', s.version?.platform],
    s.group && ['Group', s.group.members.length ? html`<a href=${link(route.org, 'system', [], { tab: 'members' })}>${s.group.members.length} members</a>, this is ${s.group.self}` : 'none: this server is alone']])}
    <p class="muted small lead">On the machine of the server, this finds what is wrong and says what to do:</p>${codeBlock('freshet doctor', 'Command')}</section></div>`

/** What a member does besides serving. */
const duties = (g, name) => [[g.controller, 'controllers'], [g.etcdLeader, 'leader of the store'], [g.logLeader, 'leader of the log']].filter(d => d[0] === name).map(d => d[1])
const memberState = m => m.ready ? badge('ok', 'Ready') : m.live ? badge('warn', 'Starting', 'Its lease is good; it does not serve clients yet') : badge('bad', 'Lost', 'Its lease has ended')

/** How far a copy is behind the log, in words. */
const copyState = c => html`<span class=${c.live ? nothing : 'muted'} title=${c.live ? 'Messages of the log that it has not applied' : 'Its member is lost'}>${c.member} ${c.live ? c.lag ? `${count(c.lag)} behind` : '✓' : 'lost'}</span>`

const shards = list => table({
  rows: list, noun: 'shards', label: 'Shards', quiet: true,
  columns: [
    { title: 'Cluster', text: s => `${s.organization}/${s.cluster}`, width: 'minmax(0,1.2fr)' },
    { title: 'Shard', text: s => s.number, num: true, width: '80px', said: true },
    { title: 'Owner', text: s => s.owner ?? '', cell: s => s.problem ? badge('bad', s.owner || 'none', s.problem) : s.owner ? badge('ok', s.owner, `Owner number ${s.epoch}`) : badge('warn', 'none', 'Calls for its topics wait until a member has it'), width: '110px' },
    { title: 'Copies', text: s => s.copies.map(c => c.member).join(), cell: s => s.copies.map((c, i) => html`${i ? ' · ' : nothing}${copyState(c)}`), width: 'minmax(0,1.6fr)', said: true },
    { title: 'Log', text: s => s.log, cell: s => html`<span title="Number of its last entry">${count(s.log)}</span>`, num: true, width: '90px', wide: true },
  ],
})

const members = (g, error) => html`<div class="stack">${failure(error)}
  ${g.members.filter(m => m.problem).map(m => html`<p class="callout bad" role="alert"><span><b>${m.name}</b>: ${m.problem}</span></p>`)}
  ${table({
    rows: g.members, noun: 'members', label: 'Members', quiet: true,
    columns: [
      { title: 'Name', text: m => m.name, cell: m => html`${m.name}${m.name === g.self ? html` <span class="muted small">this one</span>` : nothing}`, width: 'minmax(0,.6fr)' },
      { title: 'State', text: m => m.live, cell: memberState, width: '110px' },
      { title: 'Does', text: m => duties(g, m.name).join(), cell: m => duties(g, m.name).join(', ') || html`<span class="muted">${m.ready ? 'serves' : 'nothing'}</span>`, width: 'minmax(0,1.6fr)' },
      { title: 'Started', text: m => m.started ?? '', cell: m => m.started ? ago(m.started) : '–', width: '110px', said: true, has: m => m.started },
      { title: 'Clock', text: m => m.clockAheadSeconds, cell: m => m.name === g.self || !m.live ? '–' : html`<span title="How far its clock is ahead of that of ${g.self}">${m.clockAheadSeconds > 0 ? '+' : ''}${m.clockAheadSeconds.toFixed(3)} s</span>`, num: true, width: '90px', wide: true },
      { title: 'Certificate ends', text: m => m.certificateEnds ?? '', cell: m => m.certificateEnds ? ago(m.certificateEnds) : '–', width: '130px', wide: true },
      { title: 'Clients reach it at', text: m => m.https ?? m.http ?? '', cell: m => m.https || m.http ? copyField(m.https || m.http) : '–', width: 'minmax(0,1.4fr)', wide: true },
    ],
  })}
  ${g.shards?.length ? html`<h2>Shards</h2>${shards(g.shards)}` : nothing}
  <p class="muted small">As ${g.self} sees it. On a machine of the group, <code>freshet ensemble status</code> says the same.</p></div>`

const metrics = s => s.ready && s.times.length > 2 ? html`<div class="grid">
  ${[['Messages in', 'freshet_namespace_produced_messages_total', '/s'], ['Messages out', 'freshet_namespace_delivered_messages_total', '/s'], ['Acknowledged', 'freshet_namespace_acknowledgements_total', '/s'], ['Bytes in', 'freshet_namespace_produced_bytes_total', 'B/s'], ['Backlog', 'freshet_namespace_backlog_messages', ''], ['Stored', 'freshet_namespace_stored_bytes', 'B']]
    .map(([title, name, unit]) => html`<section class="card c6"><header><h2>${title}</h2><span class="muted small">${unit.endsWith('/s') ? 'per second, by cluster' : 'by cluster'}</span></header>${plotOf(s, name, unit)}</section>`)}</div>
  <p class="muted small lead">From <code>/system/v1alpha1/metrics</code>, in the format of Prometheus: have it scraped with a token that has <code>cloud.metrics.describe</code>.</p>` : loading(6)

const auditKeys = ['principal', 'surface', 'verb', 'resource', 'decision', 'requestId']
function auditQuery(org) {
  const q = new URLSearchParams({ limit: '200', organization: org })
  for (const k of [...auditKeys, 'until']) if (route.query.get(k)) q.set(k, route.query.get(k))
  return `/audit/v1alpha1/records?${q}`
}

function auditView(org, s, again) {
  if (!can(org, 'cloud.auditrecords.list') || s.errors.audit?.status === 403) return denied('the audit log', s.errors.audit, 'cloud.auditrecords.list')
  const choose = (key, list) => html`<select aria-label=${key} @change=${e => setQuery({ [key]: e.target.value, until: '' })}><option value="">any ${key}</option>${list.map(v => html`<option ?selected=${v === route.query.get(key)}>${v}</option>`)}</select>`
  const type = (key, word = key) => html`<input aria-label=${word} placeholder=${word} .value=${route.query.get(key) ?? ''} @change=${e => setQuery({ [key]: e.target.value, until: '' })}>`
  return html`<div class="filters">${choose('surface', ['resources', 'messages', 'registry', 'stream', 'token', 'signin', 'audit', 'system', 'control'])}${choose('decision', ['allow', 'deny'])}${type('principal')}${type('verb')}${type('resource')}${type('requestId', 'request id')}<button type="button" @click=${again}>Refresh</button></div>
    ${failure(s.errors.audit)}
    ${!s.audit ? s.errors.audit ? nothing : loading(6) : s.audit.records.length ? html`${table({
      rows: s.audit.records, noun: 'records', label: 'Audit log',
      columns: [
        { title: 'What', text: r => `${r.verb} ${r.resource ?? ''} ${r.surface}`, cell: r => html`${r.verb} <span class="muted">${r.resource ?? ''}</span>`, width: 'minmax(0,1.1fr)' },
        { title: 'Answer', text: r => `${r.decision} ${r.status ?? ''}`, cell: r => badge(r.decision === 'deny' ? 'bad' : 'ok', r.status ?? r.decision, `request ${r.requestId}`), width: '84px' },
        { title: 'Who', text: r => r.principal ?? '', cell: r => r.principal ? html`<span title=${r.principal}>${r.principal.split('@')[0]}</span>` : html`<span class="muted">unknown</span>`, width: 'minmax(0,.8fr)' },
        { title: 'When', text: r => r.time, cell: r => ago(r.time), width: '104px' },
        { title: 'On', text: r => r.scope ?? '', cell: r => html`<span class="mono small" title=${r.scope}>${(r.scope ?? '').replace(/^organization\/[^/]+\/?/, '')}</span>`, width: 'minmax(0,1.5fr)', wide: true },
        { title: 'By', text: r => r.role ?? r.by ?? '', width: 'minmax(0,.8fr)', wide: true },
      ],
    })}${s.audit.until ? html`<p class="lead"><button type="button" @click=${() => setQuery({ until: s.audit.until })}>Older records</button></p>` : nothing}` : empty({ icon: 'activity', title: 'No record matches', text: 'Writes, administrative calls and denials leave records. Widen the filter, or do something.' })}`
}
