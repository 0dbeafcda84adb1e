// Pages that show the data of one cluster.
import { html } from './html.js'
import { clusterClient, clustersOf } from './clusters.js'
import { go, link, route } from './router.js'
import { preferences } from './store.js'
import { denied, empty, failure, heading } from './widgets.js'

const isReady = cluster => cluster.status?.conditions?.some(c => c.type === 'Ready' && c.status === 'True')

/** The cluster that is opened without a name in the URL: the last one, a ready one, or the first. */
function defaultCluster(clusters) {
  const last = preferences.get('cluster', '')
  return clusters.find(c => c.metadata.name === last) ?? clusters.find(isReady) ?? clusters[0]
}

const noSuchCluster = org => empty({
  icon: 'clusters',
  title: 'The cluster does not exist',
  text: `It may have been deleted, or belong to another organization than ${org}.`,
  href: link(org, 'clusters'),
  more: 'All clusters',
})

const noCluster = (org, page, title) => empty({
  icon: page,
  title: 'No cluster yet',
  text: `${title} belong to a cluster. Create one first; it is ready within seconds.`,
  action: html`<a class="button primary" href=${link(org, 'clusters')}>Clusters</a>`,
  command: `kubectl get messagingclusters -n ${org}`,
})

const picker = (clusters, chosen, choose) => html`
  <label class="inline-select">
    <span class="muted small">cluster</span>
    <select aria-label="Cluster" @change=${e => choose(e.target.value)}>${clusters.map(({ metadata: { name } }) => html`
      <option value=${name} ?selected=${name === chosen}>${name}</option>`)}</select>
  </label>`

/**
 * The open function of a page whose first name in the URL is a cluster. Without a name
 * it redirects to a default cluster. open(ctx) gets `cluster`, `client` (clusterClient)
 * and `picker`, the control that chooses another cluster.
 */
export const clusterPage = (page, title, open) => async ctx => {
  const { org, signal } = ctx
  const name = ctx.names[0]
  let clusters = []
  try {
    clusters = await clustersOf(org, { signal })
  } catch (e) {
    if (e.name === 'AbortError') throw e
    const problem = e.status === 403
      ? denied('clusters', e, 'cloud.messagingclusters.list')
      : failure(e, () => location.reload())
    return () => html`${heading({ title })}${problem}`
  }
  if (!name && clusters.length) {
    const { metadata } = defaultCluster(clusters)
    const url = link(org, page, [metadata.name], Object.fromEntries(route.query))
    queueMicrotask(() => go(url, { replace: true }))
    return () => html`${heading({ title })}<div class="skeleton"><div></div></div>`
  }
  const cluster = clusters.find(c => c.metadata.name === name)
  if (!cluster) return () => html`${heading({ title })}${name ? noSuchCluster(org) : noCluster(org, page, title)}`
  preferences.set('cluster', name)
  return open({
    ...ctx,
    cluster,
    client: clusterClient(cluster, signal),
    picker: picker(clusters, name, other => go(link(org, page, [other]))),
  })
}
