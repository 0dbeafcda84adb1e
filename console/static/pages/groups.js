// The consumer groups of the Kafka protocol in a cluster.
import { html } from '../lib/html.js'
import { clusterPage } from '../lib/clusterpage.js'
import { count } from '../lib/format.js'
import { loader, loaderView } from '../lib/loader.js'
import { link } from '../lib/router.js'
import { table } from '../lib/table.js'
import { empty, heading, loading } from '../lib/widgets.js'
import { poll } from '../lib/watch.js'
import { groupDetail, groupState } from './group.js'

export default clusterPage('groups', 'Consumer groups', ctx => ctx.names.length > 2 ? groupDetail(ctx) : list(ctx))

const maxDetails = 30 // groups whose members and lag are loaded
const keyOf = g => `${g.tenant}/${g.group_id}`

/** The address of the cluster for Kafka clients. */
function bootstrapServer({ cluster }) {
  const url = cluster.status?.endpoints?.find(e => e.type === 'stream')?.pathURL ?? `${location.hostname}:9092`
  return url.replace(/^.*:\/\//, '')
}

function columnsOf(details) {
  const number = (title, value, width) => ({
    title,
    text: g => value(details.get(keyOf(g))) ?? 0,
    cell: g => details.has(keyOf(g)) ? count(value(details.get(keyOf(g)))) : '–',
    num: true,
    width,
    labeled: true,
  })
  return [
    { title: 'Group', text: g => g.group_id },
    { title: 'State', text: g => g.state, cell: groupState, width: '150px' },
    { title: 'Tenant', text: g => g.tenant, width: '120px', wideOnly: true },
    number('Members', d => d?.members.length, '90px'),
    number('Lag', d => d?.lag, '110px'),
  ]
}

function list(ctx) {
  const { client, org } = ctx
  const details = new Map()
  const groups = loader(async o => (await client.get(`${client.topics}/groups`, o)).data)
  const loadDetails = async g => {
    const url = `${client.topics}/groups/${encodeURIComponent(g.group_id)}?tenant=${encodeURIComponent(g.tenant)}`
    try {
      details.set(keyOf(g), await client.get(url, { background: true }))
    } catch { /* the row shows no numbers */ }
  }
  poll(async () => {
    await groups.reload({ background: groups.state !== 'loading' })
    for (const g of (groups.data ?? []).slice(0, maxDetails)) await loadDetails(g)
    if (groups.data) groups.data = [...groups.data] // a new array, so that the table sorts again
  }, 5000, ctx.signal)

  const groupTable = rows => table({
    rows,
    columns: columnsOf(details),
    noun: rows.length === 1 ? 'group' : 'groups',
    label: 'Consumer groups',
    href: g => link(org, 'groups', [client.name, g.tenant, g.group_id]),
  })
  const noGroups = () => empty({
    icon: 'groups',
    title: 'No consumer group yet',
    text: 'A group appears when a Kafka consumer joins it or commits an offset. You see only groups that your role ' +
      'can read.',
    command: `kcat -b ${bootstrapServer(ctx)} -G my-group orders`,
    href: link(org, 'clusters', [client.name]),
    more: 'Endpoints of the cluster',
  })
  const noKafka = () => empty({
    icon: 'groups',
    title: 'The Kafka protocol is disabled in this cluster',
    text: groups.error.message,
    action: html`<a class="button primary" href=${link(org, 'clusters', [client.name])}>Open the cluster</a>`,
  })
  return () => html`
    ${heading({
      title: 'Consumer groups',
      badge: ctx.picker,
      sub: 'Kafka consumers in a group share the partitions of a topic. The group stores their offsets.',
    })}
    ${groups.state === 'notFound' ? noKafka() : loaderView(groups, 'consumer groups', 'messaging.subscriptions.list',
      rows => rows.length ? groupTable(rows) : noGroups(), loading(6))}`
}
