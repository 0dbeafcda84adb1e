// The subscriptions of a topic.
import { html, nothing } from '../lib/html.js'
import { copyText } from '../lib/copy.js'
import { confirm, toast } from '../lib/dialog.js'
import { bytes, count, countOf, short } from '../lib/format.js'
import { loader } from '../lib/loader.js'
import { link, route, setQuery } from '../lib/router.js'
import { update } from '../lib/store.js'
import { table } from '../lib/table.js'
import { ago } from '../lib/timeago.js'
import { badge, button, denied, empty, facts, failure, loading } from '../lib/widgets.js'
import { fromHeaders, messageView } from './message.js'
import { changeFilter, newSubscription, resetSubscription } from './subscriptionforms.js'

const createPermission = 'messaging.subscriptions.create or messaging.topics.consume'
const resetPermission = 'messaging.subscriptions.update or messaging.topics.consume'
const deletePermission = 'messaging.subscriptions.delete or messaging.topics.consume'

/** Reads the message at a position of the backlog, in one partition or in a topic without partitions. */
async function peekMessage({ client, topic }, subscription, position, partition, o = {}) {
  const name = partition == null ? topic.topic : `${topic.topic}-partition-${partition}`
  const path = `/subscription/${encodeURIComponent(subscription)}/position/${position}`
  const url = client.topic(topic.tenant, topic.namespace, name, path)
  const { data, headers } = await client.call('GET', url, { bytes: true, accept: '*/*', ...o })
  return fromHeaders(data, headers, 'X-Pulsar-', `${headers.get('X-Pulsar-Message-ID')}:${partition ?? -1}:0`)
}

/** The publish time of the oldest unacknowledged message; 0 if the caller cannot read it. */
async function oldestOf(page, subscription) {
  const n = Math.min(page.topic.partitions, 16)
  const partitions = n ? Array.from({ length: n }, (_, i) => i) : [null]
  const read = async partition => {
    try {
      return (await peekMessage(page, subscription, 1, partition, { background: true })).publishTime
    } catch {
      return NaN
    }
  }
  const times = (await Promise.all(partitions.map(read))).filter(t => !Number.isNaN(t))
  return times.length ? Math.min(...times) : 0
}

/** Loads the oldest messages of the subscriptions with a backlog, at most every five seconds. */
function oldestMessages(page) {
  const times = new Map()
  let loadedAt = 0
  const refresh = async () => {
    if (Date.now() - loadedAt < 5000) return
    loadedAt = Date.now()
    for (const [name, s] of Object.entries(page.stats.data?.subscriptions ?? {}).slice(0, 30)) {
      if (s.msgBacklog > 0) times.set(name, await oldestOf(page, name))
      else times.delete(name)
    }
    update()
  }
  return { times, refresh, invalidate: () => { loadedAt = 0 } }
}

export function subscriptionsTab(page) {
  const { client, org, topic, stats } = page
  const path = (name, rest = '') => page.path(`/subscription/${encodeURIComponent(name)}${rest}`)
  const oldest = oldestMessages(page)
  let peeked = null // {name, position, message}: a loader with the message

  const peek = (name, position) => {
    const message = loader(async () => {
      const m = await peekMessage(page, name, position, topic.partitions ? 0 : null)
      page.decoder.request(m)
      return m
    })
    peeked = { name, position, message }
    message.reload()
    update()
  }
  const remove = name => {
    let force = false
    confirm({
      title: `Delete ${name}?`,
      name,
      text: html`
        <p>
          Its consumers get an error. Messages that no other subscription needs are no longer kept for it.
        </p>
        <label class="check">
          <input type="checkbox" @change=${e => { force = e.target.checked }}>
          Delete it even if it has consumers
        </label>`,
      run: async () => {
        await client.call('DELETE', path(name, force ? '?force=true' : ''))
        toast(`${name} was deleted.`)
        setQuery({ sub: '' })
        stats.reload()
      },
    })
  }
  const reset = name => resetSubscription(page, name, () => {
    oldest.invalidate()
    stats.reload()
  })
  const addButton = () => button('New subscription', {
    kind: 'primary',
    icon: 'plus',
    permission: createPermission,
    onclick: () => newSubscription(page),
  })
  const actions = s => html`
    ${button('Peek', { permission: 'messaging.topics.consume', onclick: () => peek(s.name, 1) })}
    ${button('Filter…', { permission: resetPermission, onclick: () => changeFilter(page, s, () => stats.reload()) })}
    ${button('Reset…', { icon: 'clock', permission: resetPermission, onclick: () => reset(s.name) })}
    ${button('Delete', { icon: 'trash', kind: 'danger', permission: deletePermission, onclick: () => remove(s.name) })}`
  const oldestView = name => oldest.times.get(name) ? ago(oldest.times.get(name)) : '–'

  const detail = s => html`
    <section class="card stack">
      <header class="cluster"><h2>${copyText(s.name)}</h2><span class="spacer"></span>${actions(s)}</header>
      ${facts([
        ['Backlog', `${countOf(s.msgBacklog, 'message')}, ${bytes(s.backlogSize)}`],
        ['Leased', count(s.unackedMessages)],
        ['Oldest', oldestView(s.name)],
        ['Delayed', count(s.msgDelayed)],
        ['Delivered', `${count(s.msgOutCounter)}, ${short(s.msgRateOut)}/s`],
        ['Redelivered', count(s.redelivered)],
        ['Waiting consumers', count(s.waitingConsumers)],
        ['Lease', `${(s.subscriptionProperties?.ackTimeoutMillis || 30000) / 1000} s`],
        ['Filter', filterView(s)],
        ['Dead letters', deadLetterView(page, s)],
      ])}
      ${peeked?.name === s.name ? peekView(page, peeked, peek) : nothing}
    </section>`

  const subscriptionTable = (rows, chosen) => table({
    rows,
    columns: [
      { title: 'Name', text: s => s.name },
      numberColumn('Backlog', s => s.msgBacklog, '100px'),
      numberColumn('Leased', s => s.unackedMessages, '90px'),
      {
        title: 'Oldest',
        text: s => oldest.times.get(s.name) ?? 0,
        cell: s => oldestView(s.name),
        width: '110px',
        labeled: true,
      },
      {
        title: 'Out',
        text: s => s.msgRateOut,
        cell: s => `${short(s.msgRateOut)}/s`,
        num: true,
        width: '80px',
        wideOnly: true,
      },
      {
        title: 'Dead letters',
        text: s => deadLetterTopic(page, s),
        cell: s => deadLetterTopic(page, s) ? deadLetterLink(page, s) : '–',
        width: 'minmax(0,.8fr)',
        wideOnly: true,
      },
    ],
    noun: rows.length === 1 ? 'subscription' : 'subscriptions',
    label: 'Subscriptions',
    href: s => link(org, 'topics', route.names, { tab: 'subscriptions', sub: s.name }),
    rowClass: s => s === chosen ? 'chosen' : '',
  })
  const noSubscriptions = () => empty({
    icon: 'groups',
    title: 'No subscription yet',
    text: 'A subscription stores which messages were acknowledged. Any number of programs can share one.',
    action: addButton(),
    command: `curl -X PUT -H "Authorization: Bearer $TOKEN" "$FRESHET_SERVER"${path('my-subscription')}`,
  })
  const listView = (rows, chosen) => html`
    <div class="cluster">
      <p class="muted">Each subscription stores its own acknowledgements.</p>
      <span class="spacer"></span>
      ${addButton()}
    </div>
    ${subscriptionTable(rows, chosen)}
    ${chosen ? detail(chosen) : nothing}`

  return () => {
    if (stats.state === 'denied') return denied('subscriptions', stats.error, 'messaging.subscriptions.list')
    if (stats.state !== 'ready') return stats.error ? failure(stats.error) : loading()
    oldest.refresh()
    const rows = Object.entries(stats.data.subscriptions).map(([name, s]) => ({ name, ...s }))
    const chosen = rows.find(s => s.name === route.query.get('sub'))
    const groups = Object.entries(stats.data.groups ?? {})
    return html`
      <div class="stack">
        ${rows.length ? listView(rows, chosen) : noSubscriptions()}
        ${groups.length ? groupsView(page, groups) : nothing}
      </div>`
  }
}

const numberColumn = (title, value, width) =>
  ({ title, text: value, cell: s => count(value(s)), num: true, width, labeled: true })

/** The dead letter topic of a subscription; "" without one. */
function deadLetterTopic({ topic }, s) {
  const properties = s.subscriptionProperties
  if (properties?.maxRedeliverCount == null) return ''
  return properties.deadLetterTopic || `${topic.topic}-${s.name}-DLQ`
}

function deadLetterLink(page, s) {
  const { client, org, topic } = page
  const name = deadLetterTopic(page, s)
  const full = /^(?:persistent:\/\/)?([^/]+)\/([^/]+)\/(.+)$/.exec(name)
  const names = full ? full.slice(1) : [topic.tenant, topic.namespace, name]
  return html`<a href=${link(org, 'topics', [client.name, ...names], { from: 'earliest' })}>${name}</a>`
}

function deadLetterView(page, s) {
  if (!deadLetterTopic(page, s)) return 'none: messages are redelivered until they are acknowledged'
  const limit = Number(s.subscriptionProperties.maxRedeliverCount) + 1
  const deliveries = countOf(limit, 'delivery', 'deliveries')
  return html`${deadLetterLink(page, s)} <span class="muted small">after ${deliveries}</span>`
}

function filterView(s) {
  if (!s.filter) return 'none: all messages are delivered'
  const failed = s.filterFailedMsgCount ? `, ${count(s.filterFailedMsgCount)} delivered because it failed` : ''
  return html`<code>${s.filter}</code>
    <span class="muted small">${count(s.filterRejectedMsgCount)} passed over${failed}</span>`
}

function peekView(page, { name, position, message }, peek) {
  const busy = message.state === 'loading'
  const partition = page.topic.partitions ? ', partition 0' : ''
  const content = () => {
    if (message.state === 'ready') return messageView(page, message.data)
    if (message.state === 'notFound') return html`<p class="muted">The backlog has no message at this position.</p>`
    return busy ? loading(2) : failure(message.error)
  }
  return html`
    <div class="stack">
      <div class="cluster">
        <h3>Message ${position} of the backlog${partition}</h3>
        <span class="spacer"></span>
        <button ?disabled=${position <= 1 || busy} @click=${() => peek(name, position - 1)}>Previous</button>
        <button ?disabled=${busy || !!message.error} @click=${() => peek(name, position + 1)}>Next</button>
      </div>
      ${content()}
    </div>`
}

const groupsView = ({ client, org, topic }, groups) => html`
  <section class="card">
    <h2>Kafka consumer groups</h2>
    <div class="rows-list">${groups.map(([name, g]) => html`
      <div>
        <a href=${link(org, 'groups', [client.name, topic.tenant, name])}>${name}</a>
        ${badge(g.members ? 'ok' : '', g.state)}
        <span class="spacer"></span>
        <span class="muted">lag ${count(g.lag)}</span>
      </div>`)}</div>
  </section>`
