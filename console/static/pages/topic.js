// One topic: its numbers, and the tabs.
import { html, nothing } from '../lib/html.js'
import { copyText } from '../lib/copy.js'
import { Decoder } from '../lib/decoder.js'
import { confirm, toast } from '../lib/dialog.js'
import { bytes, count, countOf, short } from '../lib/format.js'
import { loader } from '../lib/loader.js'
import { go, link } from '../lib/router.js'
import { ago } from '../lib/timeago.js'
import { badge, button, failure, heading, missingObject, numbers, tabOf, tabs } from '../lib/widgets.js'
import { poll } from '../lib/watch.js'
import { playgroundTab } from './playground.js'
import { subscriptionsTab } from './subscriptions.js'
import { produceTab } from './topicproduce.js'
import { schemaTab } from './topicschema.js'
import { settingsTab } from './topicsettings.js'
import { tailTab } from './topictail.js'

/** Loads the number of partitions into topic.partitions, and returns the statistics. */
function statsLoader(page) {
  const { client, topic } = page
  return loader(async o => {
    const options = { background: true, ...o }
    topic.partitions = (await client.get(page.path('/partitions'), options)).partitions
    return client.get(page.path(topic.partitions ? '/partitioned-stats?perPartition=true' : '/stats'), options)
  })
}

/**
 * The page of a topic. Its tabs get `page`: ctx with topic ({tenant, namespace, topic,
 * full, partitions}), stats (a loader), decoder, path(rest) in the admin API and
 * messages(rest) in the messages API.
 */
export function topicDetail(ctx) {
  const { client, org } = ctx
  const [, tenant, namespace, name] = ctx.names
  const topic = { tenant, namespace, topic: name, full: `persistent://${tenant}/${namespace}/${name}`, partitions: 0 }
  const page = {
    ...ctx,
    topic,
    path: rest => client.topic(tenant, namespace, name, rest),
    messages: rest => client.messagesOf(tenant, namespace, name, rest),
    decoder: new Decoder(client, topic),
  }
  const stats = statsLoader(page)
  page.stats = stats
  poll(() => stats.reload(), 3000, ctx.signal)
  const parts = {
    tail: tailTab(page),
    produce: produceTab(page),
    subscriptions: subscriptionsTab(page),
    playground: playgroundTab(page),
    schema: schemaTab(page),
    settings: settingsTab(page),
  }
  const views = () => [
    ['tail', 'Tail'],
    ['produce', 'Produce'],
    ['subscriptions', 'Subscriptions', stats.data ? Object.keys(stats.data.subscriptions).length : null],
    ['playground', 'Playground'],
    ['schema', 'Schema'],
    ['settings', 'Settings'],
  ]
  const ns = `${tenant}/${namespace}`
  const crumbs = [['Topics', link(org, 'topics', [client.name])], [ns, link(org, 'topics', [client.name], { ns })]]
  const missing = () => missingObject(stats, {
    title: name,
    crumbs,
    denied: 'this topic',
    permission: 'messaging.topics.describe',
    empty: {
      icon: 'topics',
      title: 'The topic does not exist',
      text: 'It may have been deleted.',
      href: link(org, 'topics', [client.name]),
      more: 'All topics',
    },
  })
  const deleteButton = () => button('Delete', {
    icon: 'trash',
    kind: 'danger',
    permission: 'messaging.topics.delete',
    onclick: () => removeTopic(page),
  })
  return () => {
    if (stats.state === 'denied' || stats.state === 'notFound') return missing()
    return html`
      ${heading({
        title: name,
        crumbs,
        badge: topic.partitions ? badge('info', countOf(topic.partitions, 'partition')) : nothing,
        sub: copyText(topic.full),
        actions: deleteButton(),
      })}
      ${stats.error && !stats.data ? failure(stats.error, () => stats.reload()) : nothing}
      ${stats.data ? statsView(stats.data) : nothing}
      ${tabs(views())}
      ${parts[tabOf(views())]()}`
  }
}

const statsView = s => numbers([
  ['In', `${short(s.msgRateIn)}/s`],
  ['Out', `${short(s.msgRateOut)}/s`],
  ['Messages in', count(s.msgInCounter), 'since the server started'],
  ['Stored', bytes(s.storageSize)],
  ['Backlog', count(Object.values(s.subscriptions).reduce((n, sub) => n + sub.msgBacklog, 0))],
  ['Latest', s.lastPublishTimestamp ? ago(s.lastPublishTimestamp) : 'never'],
])

function removeTopic({ client, org, topic, path }) {
  let force = false
  confirm({
    title: `Delete ${topic.topic}?`,
    name: topic.topic,
    text: html`
      <p>Its messages, subscriptions and schema are deleted with it. You cannot undo this.</p>
      <label class="check">
        <input type="checkbox" @change=${e => { force = e.target.checked }}>
        Delete it even if it has consumers
      </label>`,
    run: async () => {
      await client.call('DELETE', path(`${topic.partitions ? '/partitions' : ''}${force ? '?force=true' : ''}`))
      toast(`${topic.topic} was deleted.`)
      go(link(org, 'topics', [client.name]))
    },
  })
}
