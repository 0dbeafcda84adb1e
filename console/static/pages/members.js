// The members of the ensemble, and the shards of the clusters.
import { html, nothing } from '../lib/html.js'
import { copyField } from '../lib/copy.js'
import { count } from '../lib/format.js'
import { table } from '../lib/table.js'
import { ago } from '../lib/timeago.js'
import { badge, failure } from '../lib/widgets.js'

/** The tasks that a member has in addition to serving clients. */
function rolesOf({ controller, etcdLeader, logLeader }, name) {
  const roles = [[controller, 'controllers'], [etcdLeader, 'leader of etcd'], [logLeader, 'leader of the log']]
  return roles.filter(([member]) => member === name).map(([, text]) => text)
}

function memberState(m) {
  if (m.ready) return badge('ok', 'Ready')
  return m.live
    ? badge('warn', 'Starting', 'Its lease is valid, but it does not serve clients yet')
    : badge('bad', 'Lost', 'Its lease has expired')
}

function rolesView(ensemble, m) {
  const roles = rolesOf(ensemble, m.name)
  return roles.length ? roles.join(', ') : html`<span class="muted">${m.ready ? 'serves clients' : 'none'}</span>`
}

function clockView(ensemble, m) {
  if (m.name === ensemble.self || !m.live) return '–'
  const text = `${m.clockAheadSeconds > 0 ? '+' : ''}${m.clockAheadSeconds.toFixed(3)} s`
  return html`<span title="How far its clock is ahead of the clock of ${ensemble.self}">${text}</span>`
}

const addressOf = m => m.https || m.http || ''

const memberColumns = ensemble => [
  {
    title: 'Name',
    text: m => m.name,
    cell: m => html`${m.name}${m.name === ensemble.self ? html` <span class="muted small">this one</span>` : nothing}`,
    width: 'minmax(0,.6fr)',
  },
  { title: 'State', text: m => m.live, cell: memberState, width: '110px' },
  {
    title: 'Roles',
    text: m => rolesOf(ensemble, m.name).join(),
    cell: m => rolesView(ensemble, m),
    width: 'minmax(0,1.6fr)',
  },
  {
    title: 'Started',
    text: m => m.started ?? '',
    cell: m => m.started ? ago(m.started) : '–',
    width: '110px',
    labeled: true,
    has: m => m.started,
  },
  {
    title: 'Clock',
    text: m => m.clockAheadSeconds,
    cell: m => clockView(ensemble, m),
    num: true,
    width: '90px',
    wideOnly: true,
  },
  {
    title: 'Certificate expires',
    text: m => m.certificateEnds ?? '',
    cell: m => m.certificateEnds ? ago(m.certificateEnds) : '–',
    width: '140px',
    wideOnly: true,
  },
  {
    title: 'Address for clients',
    text: addressOf,
    cell: m => addressOf(m) ? copyField(addressOf(m)) : '–',
    width: 'minmax(0,1.4fr)',
    wideOnly: true,
  },
]

function ownerView(s) {
  if (s.problem) return badge('bad', s.owner || 'none', s.problem)
  return s.owner
    ? badge('ok', s.owner, `Epoch ${s.epoch}`)
    : badge('warn', 'none', 'Requests for its topics wait until a member owns the shard')
}

/** A copy of a shard, and how many messages of the log it has not applied. */
function copyView({ member, live, lag }) {
  if (!live) return html`<span class="muted" title="Its member is lost">${member} lost</span>`
  const text = lag ? `${count(lag)} behind` : '✓'
  return html`<span title="Messages of the log that the copy has not applied">${member} ${text}</span>`
}

const shardColumns = [
  { title: 'Cluster', text: s => `${s.organization}/${s.cluster}`, width: 'minmax(0,1.2fr)' },
  { title: 'Shard', text: s => s.number, num: true, width: '80px', labeled: true },
  { title: 'Owner', text: s => s.owner ?? '', cell: ownerView, width: '110px' },
  {
    title: 'Copies',
    text: s => s.copies.map(c => c.member).join(),
    cell: s => s.copies.map((c, i) => html`${i ? ' · ' : nothing}${copyView(c)}`),
    width: 'minmax(0,1.6fr)',
    labeled: true,
  },
  {
    title: 'Log',
    text: s => s.log,
    cell: s => html`<span title="Number of the last entry">${count(s.log)}</span>`,
    num: true,
    width: '90px',
    wideOnly: true,
  },
]

const shardsView = shards => html`
  <h2>Shards</h2>
  ${table({ rows: shards, columns: shardColumns, noun: 'shards', label: 'Shards', quiet: true })}`

const isGood = s => !s.problem && s.replicas.every(r => !r.problem)

/** A replica of a stream; one that is not current for a few seconds is normal. */
function replicaView({ member, current, lag, problem }) {
  if (problem) return html`<span class="muted" title=${problem}>${member} missing</span>`
  const text = current ? (lag ? `${count(lag)} behind` : '✓') : 'catching up'
  return html`<span title="Entries of the log that the replica does not have">${member} ${text}</span>`
}

const streamColumns = [
  { title: 'Cluster', text: s => s.cluster ?? '', cell: s => s.cluster ?? 'all', width: 'minmax(0,1fr)' },
  { title: 'Stream', text: s => s.part, width: 'minmax(0,1fr)' },
  {
    title: 'Leader',
    text: s => s.leader,
    cell: s => s.problem ? badge('bad', s.leader || 'none', s.problem) : badge('ok', s.leader),
    width: '110px',
  },
  {
    title: 'Replicas',
    text: s => s.replicas.map(r => r.member).join(),
    cell: s => s.replicas.map((r, i) => html`${i ? ' · ' : nothing}${replicaView(r)}`),
    width: 'minmax(0,1.6fr)',
    labeled: true,
  },
]

/** When the part that was verified longest ago was verified. */
function verifiedOf(members) {
  return members.flatMap(m => m.parts ?? []).map(p => p.verified).filter(Boolean).sort()[0]
}

function replicationView({ streams, members }) {
  const good = streams.filter(isGood).length
  const verified = verifiedOf(members)
  const bad = streams.filter(s => !isGood(s))
  return html`
    <h2>Replicas of the log</h2>
    <p class=${bad.length ? 'callout bad' : 'muted'}>
      <span>
        ${good} of ${streams.length} streams have all replicas.
        ${verified ? html`All files were last verified ${ago(verified)}.` : nothing}
      </span>
    </p>
    ${bad.length
      ? table({ rows: bad, columns: streamColumns, noun: 'streams', label: 'Streams', quiet: true })
      : nothing}`
}

/** The clusters that a member cannot serve. */
const failingView = m => Object.entries(m.failing ?? {}).map(([cluster, why]) => html`
  <p class="callout bad" role="alert"><span><b>${cluster}</b> on ${m.name}: ${why}</span></p>`)

const problemView = m => html`
  <p class="callout bad" role="alert"><span><b>${m.name}</b>: ${m.problem}</span></p>`

export const membersView = (ensemble, error) => html`
  <div class="stack">
    ${failure(error)}
    ${ensemble.members.filter(m => m.problem).map(problemView)}
    ${ensemble.members.map(failingView)}
    ${table({
      rows: ensemble.members,
      columns: memberColumns(ensemble),
      noun: 'members',
      label: 'Members',
      quiet: true,
    })}
    ${ensemble.shards?.length ? shardsView(ensemble.shards) : nothing}
    ${ensemble.streams?.length ? replicationView(ensemble) : nothing}
    <p class="muted small">
      This is the view of ${ensemble.self}. On the machine of a member, <code>freshet ensemble status</code> shows the
      same.
    </p>
  </div>`
