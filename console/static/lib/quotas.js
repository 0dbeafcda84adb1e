// Quotas of an organization or a cluster, and their usage.
import { html, nothing } from './html.js'
import { bytes, count, quantity } from './format.js'
import { badge, loading } from './widgets.js'

const titles = {
  clusters: 'Clusters',
  instances: 'Instances',
  topics: 'Topics',
  subscriptions: 'Subscriptions',
  subjects: 'Subjects',
  schemaBytes: 'Schemas',
  storedBytes: 'Stored messages',
  clientStateBytes: 'State of Kafka clients',
  tenantStateBytes: 'State of the largest tenant',
  accountStateBytes: 'State of the largest account',
  requestsPerSecond: 'Requests per second',
  bytesPerSecond: 'Traffic per second',
}

/** The path of a quota: "organization" or "cluster.<name>". */
export const quotaPath = (org, name) =>
  `/api/v1/namespaces/${encodeURIComponent(org)}/resourcequotas/${encodeURIComponent(name)}`

function bar(key, quota) {
  const used = quantity(quota.status.used[key])
  const limit = quantity(quota.status.hard[key])
  const part = Math.min(1, used / limit)
  const level = part > 0.9 ? 'bad' : part > 0.75 ? 'warn' : ''
  const format = /bytes/i.test(key) ? bytes : count
  const title = titles[key] ?? key
  const width = Math.max(part * 100, used > 0 ? 1 : 0)
  const warning = { bad: badge('bad', 'Nearly full'), warn: badge('warn', 'Filling up') }[level] ?? nothing
  return html`
    <section class="card c4 stack tight">
      <div class="cluster"><h3>${title}</h3><span class="spacer"></span>${warning}</div>
      <div class="meter ${level}" role="meter" aria-label=${title} aria-valuenow=${used} aria-valuemin="0"
        aria-valuemax=${limit}><i .style=${`width:${width}%`}></i></div>
      <p class="small muted">${format(used)} of ${format(limit)}</p>
    </section>`
}

/** The limits of a quota as bars. */
export const quotaView = quota => quota
  ? html`<div class="grid">${Object.keys(quota.status.hard).sort().map(key => bar(key, quota))}</div>`
  : loading(3)
