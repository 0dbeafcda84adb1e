// The server: health, members of the ensemble, metrics, quotas, audit log, configuration.
import { html, nothing } from '../lib/html.js'
import { call, get } from '../lib/api.js'
import { codeBlock, copyText } from '../lib/copy.js'
import { checkTexts, readHealth } from '../lib/health.js'
import { metricsOf, parseMetrics, plotOf } from '../lib/metrics.js'
import { quotaPath, quotaView } from '../lib/quotas.js'
import { link, route } from '../lib/router.js'
import { session } from '../lib/session.js'
import { update } from '../lib/store.js'
import { poll } from '../lib/watch.js'
import { badge, denied, facts, failure, heading, loading, tabOf, tabs } from '../lib/widgets.js'
import { auditQuery, auditView } from './audit.js'
import { membersView } from './members.js'

/** Loads everything that the page shows. errors has the last error of each part. */
function systemData({ org, signal }) {
  const data = {
    ensemble: null, health: null, version: null, build: null, quota: null, audit: null, config: null, errors: {},
  }
  const o = { background: true, signal }
  const load = async (key, request) => {
    try {
      data[key] = await request()
      data.errors[key] = null
    } catch (e) {
      if (e.name !== 'AbortError') data.errors[key] = e
    }
    update()
  }
  const loadBuild = async () => {
    const text = await get('/system/v1alpha1/metrics', { ...o, accept: 'text/plain' })
    return parseMetrics(text).find(m => m.name === 'freshet_build_info')?.labels
  }
  poll(() => load('health', () => readHealth(o)), 5000, signal)
  poll(() => load('quota', () => get(quotaPath(org, 'organization'), o)), 3000, signal)
  load('version', () => get('/version', o))
  if (session.identity?.systemAdministrator) {
    load('build', loadBuild)
    poll(() => load('ensemble', () => get('/system/v1alpha1/members', o)), 5000, signal)
  }
  return { data, load }
}

export default ctx => {
  const { org, signal } = ctx
  const { data, load } = systemData(ctx)
  const series = metricsOf(ctx)
  let auditURL = ''
  let configRequested = false

  const views = () => {
    const members = data.ensemble?.members.length
    return [
      ['health', 'Health'],
      ...(members ? [['members', 'Members', members]] : []),
      ['metrics', 'Metrics'],
      ['usage', 'Quotas'],
      ['audit', 'Audit log'],
      ['config', 'Configuration'],
    ]
  }
  const audit = () => {
    const url = auditQuery(org)
    if (auditURL !== url) {
      auditURL = url
      data.audit = null
      load('audit', () => call('GET', url, { signal }).then(r => r.data))
    }
    const refresh = () => {
      auditURL = ''
      update()
    }
    return auditView(org, data.audit, data.errors.audit, refresh)
  }
  const configuration = () => {
    if (!session.identity?.systemAdministrator) {
      return denied('the configuration', { message: 'Only system administrators can see the configuration.' })
    }
    if (!configRequested) {
      configRequested = true
      load('config', () => get('/system/v1alpha1/configuration', { accept: 'application/yaml', signal }))
    }
    return configurationView(data)
  }
  const parts = {
    members: () => membersView(data.ensemble, data.errors.ensemble),
    health: () => html`${failure(data.errors.health)}${data.health ? healthView(data) : loading()}`,
    usage: () => data.errors.quota ? denied('quotas', data.errors.quota) : quotaView(data.quota),
    metrics: () => series.error ? denied('metrics', series.error, 'cloud.metrics.describe') : metricsView(series),
    audit,
    config: configuration,
  }
  const healthBadge = () => {
    if (!data.health) return nothing
    return data.health.ok ? badge('ok', 'Healthy') : badge('bad', 'Not ready')
  }
  return () => html`
    ${heading({ title: 'System', badge: healthBadge(), sub: location.host })}
    ${tabs(views())}
    ${parts[tabOf(views())]()}`
}

const checkRow = c => html`
  <div>
    ${c.ok ? badge('ok', 'OK') : badge('bad', 'Failed')}
    <span class="mono small">${c.name}</span>
    <span class="spacer"></span>
    <span class="muted small hide-narrow">${checkTexts[c.name] ?? ''}</span>
  </div>`

function ensembleText({ members, self }) {
  if (!members.length) return 'none: this is a single server'
  const href = link(route.org, 'system', [], { tab: 'members' })
  return html`<a href=${href}>${members.length} members</a>, this is ${self}`
}

const healthView = ({ health, build, version, ensemble }) => html`
  <div class="grid">
    <section class="card c7">
      <h2>Checks</h2>
      <div class="rows-list">${health.checks.map(checkRow)}</div>
    </section>
    <section class="card c5">
      <h2>Server</h2>
      ${facts([
        build && ['Version', build.version],
        build && ['Commit', copyText(build.commit.slice(0, 12))],
        ['API machinery', version?.gitVersion],
        ['Go', version?.goVersion],
        ['Platform', version?.platform],
        ensemble && ['Ensemble', ensembleText(ensemble)],
      ])}
      <p class="muted small lead">
        This command, run on the server's machine, finds problems and recommends what to do:
      </p>
      ${codeBlock('freshet doctor', 'Command')}
    </section>
  </div>`

const plots = [
  ['Messages in', 'freshet_namespace_produced_messages_total', '/s'],
  ['Messages out', 'freshet_namespace_delivered_messages_total', '/s'],
  ['Acknowledged', 'freshet_namespace_acknowledgements_total', '/s'],
  ['Bytes in', 'freshet_namespace_produced_bytes_total', 'B/s'],
  ['Backlog', 'freshet_namespace_backlog_messages', ''],
  ['Stored', 'freshet_namespace_stored_bytes', 'B'],
]

function metricsView(series) {
  if (!series.ready || series.times.length <= 2) return loading(6)
  const plot = ([title, name, unit]) => html`
    <section class="card c6">
      <header>
        <h2>${title}</h2>
        <span class="muted small">${unit.endsWith('/s') ? 'per second, by cluster' : 'by cluster'}</span>
      </header>
      ${plotOf(series, name, unit)}
    </section>`
  return html`
    <div class="grid">${plots.map(plot)}</div>
    <p class="muted small lead">
      The metrics are from <code>/system/v1alpha1/metrics</code>. Prometheus can scrape them with a token that has the
      permission <code>cloud.metrics.describe</code>.
    </p>`
}

const configurationView = ({ config, errors }) => html`
  ${failure(errors.config)}
  ${config ? html`
    <p class="muted small lead">
      The configuration in use, with defaults. Secrets are not included, only the names of their files.
    </p>
    ${codeBlock(config, 'Configuration', 'tall')}` : loading(8)}`
