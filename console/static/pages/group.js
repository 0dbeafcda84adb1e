// One consumer group: its lag, its members, its offsets.
import { html, nothing } from '../lib/html.js'
import { copyText } from '../lib/copy.js'
import { confirm, formDialog, toast } from '../lib/dialog.js'
import { field, input, select } from '../lib/fields.js'
import { count, countOf } from '../lib/format.js'
import { loader } from '../lib/loader.js'
import { parseTopic } from '../lib/names.js'
import { go, link } from '../lib/router.js'
import { table } from '../lib/table.js'
import { ago } from '../lib/timeago.js'
import { poll } from '../lib/watch.js'
import { badge, button, facts, failure, heading, loading, missingObject, numbers, tabOf, tabs } from '../lib/widgets.js'

const stateKinds = { Stable: 'ok', Empty: '', Dead: 'bad' }
export const groupState = g => badge(stateKinds[g.state] ?? 'warn', g.state)
const resetPermission = 'messaging.subscriptions.update or messaging.topics.consume'

export function groupDetail(ctx) {
  const { client, org } = ctx
  const [, tenant, name] = ctx.names
  const url = (rest = '') =>
    `${client.topics}/groups/${encodeURIComponent(name)}${rest}?tenant=${encodeURIComponent(tenant)}`
  const group = loader(o => client.get(url(), o))
  poll(() => group.reload({ background: group.state !== 'loading' }), 3000, ctx.signal)
  const crumbs = [['Consumer groups', link(org, 'groups', [client.name])]]
  const missing = () => missingObject(group, {
    title: name,
    crumbs,
    denied: 'this consumer group',
    permission: 'messaging.subscriptions.describe',
    empty: {
      icon: 'groups',
      title: 'The consumer group does not exist',
      text: 'It may have been deleted, or its offsets have expired.',
      href: link(org, 'groups', [client.name]),
      more: 'All consumer groups',
    },
  })
  const setOffsets = async offsets => {
    await client.call('PUT', url('/offsets'), { body: { offsets } })
    toast(`The offsets of ${name} were reset.`)
    group.reload()
  }
  const reset = only => resetOffsets(name, group, only, setOffsets)
  const remove = () => confirm({
    title: `Delete ${name}?`,
    name,
    text: 'Its offsets are deleted. A consumer that joins a group with this name starts without offsets.',
    run: async () => {
      await client.call('DELETE', url())
      toast(`${name} was deleted.`)
      go(link(org, 'groups', [client.name]))
    },
  })
  const actions = () => html`
    ${button('Reset offsets…', { icon: 'clock', permission: resetPermission, onclick: () => reset() })}
    ${button('Delete', {
      icon: 'trash',
      kind: 'danger',
      permission: 'messaging.subscriptions.delete',
      onclick: remove,
    })}`
  const views = g => [['lag', 'Partitions', g.offsets.length], ['members', 'Members', g.members.length]]

  return () => {
    if (group.state === 'denied' || group.state === 'notFound') return missing()
    const g = group.data
    if (!g) {
      const content = group.error ? failure(group.error, () => group.reload()) : loading()
      return html`${heading({ title: name, crumbs })}${content}`
    }
    return html`
      ${heading({ title: name, crumbs, badge: groupState(g), sub: html`Tenant ${tenant}`, actions: actions() })}
      ${numbers([
        ['Lag', count(g.lag)],
        ['Members', count(g.members.length)],
        ['Partitions', count(g.offsets.length)],
        ['Generation', count(g.generation)],
        ['Protocol', g.protocol || '–'],
      ])}
      ${tabs(views(g))}
      ${tabOf(views(g)) === 'lag' ? offsetsView(ctx, g, reset) : membersView(g)}`
  }
}

function offsetsView({ client, org }, g, reset) {
  if (!g.offsets.length) return html`<p class="card muted">The group has not committed any offset yet.</p>`
  const maxLag = Math.max(1, ...g.offsets.map(o => o.lag))
  const topicLink = o => {
    const { tenant, namespace, topic } = parseTopic(o.topic_name)
    return html`<a href=${link(org, 'topics', [client.name, tenant, namespace, topic])}>${o.topic_name}</a>`
  }
  const lagBar = o => html`
    <span class="lag">
      <span class="meter"><i .style=${`width:${o.lag / maxLag * 100}%`}></i></span>${count(o.lag)}
    </span>`
  const resetButton = o => button('Reset', {
    kind: 'ghost',
    permission: resetPermission,
    label: `Reset the offset of partition ${o.partition_id} of ${o.topic_name}`,
    onclick: () => reset(o),
  })
  const number = (title, value, width, cell) => ({ title, text: value, cell, num: true, width, labeled: true })
  return table({
    rows: g.offsets,
    columns: [
      { title: 'Topic', text: o => o.topic_name, cell: topicLink },
      { title: 'Lag', text: o => o.lag, cell: lagBar, width: '190px', labeled: true },
      number('Partition', o => o.partition_id, '80px'),
      number('Offset', o => o.offset, '100px', o => count(o.offset)),
      number('End', o => o.end_offset, '100px', o => count(o.end_offset)),
      {
        title: 'Committed',
        text: o => o.committed_at,
        cell: o => o.committed_at ? ago(o.committed_at) : '–',
        width: '110px',
        wideOnly: true,
      },
      { title: '', cell: resetButton, width: '80px', wideOnly: true },
    ],
    noun: g.offsets.length === 1 ? 'partition' : 'partitions',
    label: 'Lag of each partition',
  })
}

function membersView(g) {
  if (!g.members.length) return html`<p class="card muted">The group has no members. Its offsets are kept.</p>`
  const card = m => html`
    <section class="card">
      <header>
        <h3>${copyText(m.member_id)}</h3>
        ${m.member_id === g.leader ? badge('info', 'Leader') : nothing}
      </header>
      ${facts([['Client', m.client_id || '–'], ['Host', m.client_host], ['Instance', m.instance_id || '–']])}
    </section>`
  return html`<div class="stack">${g.members.map(card)}</div>`
}

const positions = [
  ['earliest', 'Earliest: the oldest stored message'],
  ['latest', 'Latest: the end'],
  ['time', 'A time'],
  ['offset', 'An offset'],
]

function positionOf(v) {
  if (v.to === 'time') return { timestamp: new Date(v.time).getTime() }
  return v.to === 'offset' ? { offset: Number(v.offset) } : { position: v.to }
}

/** Resets the offsets of a group with a form: of one partition (only), of a topic, or of all topics. */
function resetOffsets(name, group, only, setOffsets) {
  const topics = [...new Set(group.data.offsets.map(o => o.topic_name))]
  const memberCount = () => group.data.members.length // it changes while the dialog is open
  const topicField = (v, ctl) => topics.length
    ? select(v, 'topic', ctl, [['', 'all topics'], ...topics.map(t => [t])])
    : input(v, 'topic', ctl, { required: true })
  const valueField = (v, ctl) => {
    if (v.to === 'time') {
      const control = input(v, 'time', ctl, { type: 'datetime-local', required: true })
      return field('Time', control, 'In your time zone, not UTC.')
    }
    if (v.to !== 'offset') return nothing
    return field('Offset', input(v, 'offset', ctl, { type: 'number', min: 0, required: true }))
  }
  const partitionField = (v, ctl) =>
    field('Partition', input(v, 'partition', ctl, { type: 'number', min: 0, placeholder: 'all' }))
  return formDialog({
    title: `Reset the offsets of ${name}`,
    values: {
      topic: only?.topic_name ?? (topics.length === 1 ? topics[0] : ''),
      partition: only ? String(only.partition_id) : '',
      to: 'earliest',
      time: '',
      offset: '0',
    },
    action: 'Reset',
    view: (v, ctl) => html`
      ${memberCount() ? html`<p class="callout warn">
        The group has ${countOf(memberCount(), 'member')}. Stop them first: the offsets of a group with members
        cannot be reset.
      </p>` : nothing}
      <div class="fields">
        ${field('Topic', topicField(v, ctl))}
        ${v.topic ? partitionField(v, ctl) : nothing}
      </div>
      ${field('Position', select(v, 'to', ctl, positions))}
      ${valueField(v, ctl)}`,
    run: async v => {
      const partition = v.topic && v.partition !== '' ? { partition_id: Number(v.partition) } : {}
      const names = v.topic ? [v.topic] : topics
      await setOffsets(names.map(topic_name => ({ topic_name, ...partition, ...positionOf(v) })))
    },
  })
}
