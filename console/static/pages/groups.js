// Consumer groups of the stream protocol: who reads, how far behind, and where from.
import { html, nothing } from '../lib/html.js'
import { poll } from '../lib/watch.js'
import { go, link } from '../lib/router.js'
import { table } from '../lib/table.js'
import { count } from '../lib/format.js'
import { confirm, toast } from '../lib/dialog.js'
import { ago, badge, button, copyText, denied, empty, facts, failure, field, heading, loading, tabOf, tabs } from '../lib/widgets.js'
import { input, select } from '../lib/objects.js'
import { asked, form, onCluster, parseTopic, shownOr } from '../lib/plane.js'

export default onCluster('groups', 'Groups', ctx => ctx.names.length > 2 ? detail(ctx) : list(ctx))

const mood = { Stable: 'ok', Empty: '', Dead: 'bad' }
const state = g => badge(mood[g.state] ?? 'warn', g.state)
const move = 'messaging.subscriptions.update or messaging.topics.consume'

function list(ctx) {
  const { at, org } = ctx
  const lags = new Map()
  const groups = asked(async o => (await at.get(`${at.topics}/groups`, o)).data)
  poll(async () => {
    await groups.again({ background: groups.state !== 'loading' })
    for (const g of (groups.data ?? []).slice(0, 30)) await at.get(`${at.topics}/groups/${encodeURIComponent(g.group_id)}?tenant=${encodeURIComponent(g.tenant)}`, { background: true }).then(x => lags.set(`${g.tenant}/${g.group_id}`, x), () => {})
    if (groups.data) groups.data = [...groups.data]
  }, 5000, ctx.signal)
  const of = g => lags.get(`${g.tenant}/${g.group_id}`)
  return () => html`
    ${heading({ title: 'Groups', badge: ctx.picker, sub: 'Consumers of the stream protocol share a topic’s partitions in a group, which remembers how far it has read.' })}
    ${groups.state === 'gone' ? empty({ icon: 'groups', title: 'This cluster does not speak the stream protocol', text: groups.error.message, action: html`<a class="button primary" href=${link(org, 'clusters', [at.name])}>The cluster</a>` })
      : shownOr(groups, 'groups', 'messaging.subscriptions.list', rows => rows.length ? table({
        rows, noun: rows.length === 1 ? 'group' : 'groups', label: 'Groups', href: g => link(org, 'groups', [at.name, g.tenant, g.group_id]),
        columns: [{ title: 'Group', text: g => g.group_id }, { title: 'State', text: g => g.state, cell: state, width: '150px' }, { title: 'Tenant', text: g => g.tenant, width: '120px', wide: true },
          { title: 'Members', text: g => of(g)?.members.length ?? 0, cell: g => of(g) ? count(of(g).members.length) : '–', num: true, width: '90px', said: true }, { title: 'Behind', text: g => of(g)?.lag ?? 0, cell: g => of(g) ? count(of(g).lag) : '–', num: true, width: '110px', said: true }],
      }) : empty({ icon: 'groups', title: 'No group yet', text: 'A group appears when a consumer of the stream protocol joins it or commits an offset. You see only groups that your role can read.', command: `kcat -b ${(ctx.cluster.status?.endpoints?.find(e => e.type === 'stream')?.pathURL ?? `${location.hostname}:9092`).replace(/^.*:\/\//, '')} -G my-group orders`, href: link(org, 'clusters', [at.name]), more: 'Where the cluster answers' }), loading(6))}`
}

function detail(ctx) {
  const { at, org } = ctx
  const [, tenant, name] = ctx.names
  const url = rest => `${at.topics}/groups/${encodeURIComponent(name)}${rest ?? ''}?tenant=${encodeURIComponent(tenant)}`
  const group = asked(o => at.get(url(), o))
  poll(() => group.again({ background: group.state !== 'loading' }), 3000, ctx.signal)
  const crumbs = [['Groups', link(org, 'groups', [at.name])]]
  const topicLink = n => { const t = parseTopic(n); return link(org, 'topics', [at.name, t.tenant, t.namespace, t.topic]) }
  const reset = only => {
    const topics = [...new Set(group.data.offsets.map(o => o.topic_name))]
    const v = { topic: only?.topic_name ?? (topics.length === 1 ? topics[0] : ''), partition: only ? String(only.partition_id) : '', to: 'earliest', time: '', offset: '0' }
    return form({
      title: `Where ${name} goes on`, values: v, action: 'Move',
      view: (v, ctl) => html`${group.data.members.length ? html`<p class="callout warn">The group has ${group.data.members.length} members. Stop them first: offsets of a group that reads cannot be moved.</p>` : nothing}
        <div class="fields">${field('Topic', topics.length ? select(v, 'topic', ctl, [['', 'every topic'], ...topics.map(t => [t])]) : input(v, 'topic', ctl, { required: true }))}${v.topic ? field('Partition', input(v, 'partition', ctl, { type: 'number', min: 0, placeholder: 'each' })) : nothing}</div>
        ${field('To', select(v, 'to', ctl, [['earliest', 'The beginning of what is kept'], ['latest', 'The end'], ['time', 'A time'], ['offset', 'An offset']]))}
        ${v.to === 'time' ? field('Time', input(v, 'time', ctl, { type: 'datetime-local', required: true }), 'Yours, not UTC.') : v.to === 'offset' ? field('Offset', input(v, 'offset', ctl, { type: 'number', min: 0, required: true })) : nothing}`,
      run: async v => {
        const place = v.to === 'time' ? { timestamp: new Date(v.time).getTime() } : v.to === 'offset' ? { offset: Number(v.offset) } : { position: v.to }
        await at.call('PUT', url('/offsets'), { body: { offsets: (v.topic ? [v.topic] : topics).map(topic_name => ({ topic_name, ...(v.topic && v.partition !== '' && { partition_id: Number(v.partition) }), ...place })) } })
        toast(`${name} goes on from there.`)
        group.again()
      },
    })
  }
  const remove = () => confirm({ title: `Delete ${name}?`, name, text: 'What it has read is forgotten. A consumer that joins under this name begins anew.', run: async () => { await at.call('DELETE', url()); toast(`${name} is deleted.`); go(link(org, 'groups', [at.name])) } })
  const views = d => [['lag', 'Partitions', d.offsets.length], ['members', 'Members', d.members.length]]
  return () => {
    if (group.state === 'denied') return html`${heading({ title: name, crumbs })}${denied('this group', group.error, 'messaging.subscriptions.describe')}`
    if (group.state === 'gone') return html`${heading({ title: name, crumbs })}${empty({ icon: 'groups', title: 'There is no such group', text: 'It may have been deleted, or its offsets have run out.', href: link(org, 'groups', [at.name]), more: 'All groups' })}`
    const g = group.data
    if (!g) return html`${heading({ title: name, crumbs })}${group.error ? failure(group.error, () => group.again()) : loading()}`
    const most = Math.max(1, ...g.offsets.map(o => o.lag))
    return html`${heading({ title: name, crumbs, badge: state(g), sub: html`Tenant ${tenant}`, actions: html`${button('Move…', { icon: 'clock', permission: move, onclick: () => reset() })}${button('Delete', { icon: 'trash', kind: 'danger', permission: 'messaging.subscriptions.delete', onclick: remove })}` })}
      <div class="stats slim">${[['Behind', count(g.lag)], ['Members', count(g.members.length)], ['Partitions', count(g.offsets.length)], ['Generation', count(g.generation)], ['Protocol', g.protocol || '–']].map(([k, v]) => html`<div class="card stat"><span>${k}</span><b>${v}</b></div>`)}</div>
      ${tabs(views(g))}${tabOf(views(g)) === 'lag' ? g.offsets.length ? table({
        rows: g.offsets, noun: g.offsets.length === 1 ? 'partition' : 'partitions', label: 'Lag of each partition',
        columns: [{ title: 'Topic', text: o => o.topic_name, cell: o => html`<a href=${topicLink(o.topic_name)}>${o.topic_name}</a>` }, { title: 'Behind', text: o => o.lag, cell: o => html`<span class="lag"><span class="meter"><i .style=${`width:${o.lag / most * 100}%`}></i></span>${count(o.lag)}</span>`, width: '190px', said: true },
          { title: 'Partition', text: o => o.partition_id, num: true, width: '80px', said: true }, { title: 'Offset', text: o => o.offset, cell: o => count(o.offset), num: true, width: '100px', said: true }, { title: 'End', text: o => o.end_offset, cell: o => count(o.end_offset), num: true, width: '100px', said: true },
          { title: 'Committed', text: o => o.committed_at, cell: o => o.committed_at ? ago(o.committed_at) : '–', width: '110px', wide: true },
          { title: '', cell: o => button('Move', { kind: 'ghost', permission: move, label: `Move partition ${o.partition_id} of ${o.topic_name}`, onclick: () => reset(o) }), width: '80px', wide: true }],
      }) : html`<p class="card muted">It has not committed anything yet.</p>` : g.members.length ? html`<div class="stack">${g.members.map(m => html`<section class="card"><header><h3>${copyText(m.member_id)}</h3>${m.member_id === g.leader ? badge('info', 'Leader') : nothing}</header>${facts([['Client', m.client_id || '–'], ['Host', m.client_host], ['Instance', m.instance_id || '–']])}</section>`)}</div>` : html`<p class="card muted">Nobody is in it right now. The offsets stay.</p>`}`
  }
}
