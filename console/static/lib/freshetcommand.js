// A recorded request as a command of the freshet command line.
import { parseResource, quote, withKind } from './requests.js'

/** @returns {string} "" if freshet has no such command */
export function freshet(r) {
  const p = parseResource(r.url)
  if (!p) return clusterCommand(r)
  if (p.subresource) return ''
  const namespace = p.org ? ` -n ${quote(p.org)}` : ''
  const target = p.plural + (p.name ? ' ' + quote(p.name) : '')
  const apply = () => `freshet apply${namespace} -f - <<'END'\n${withKind(r.body, p.plural)}\nEND`
  switch (r.method) {
    case 'GET':
      return `freshet get ${target}${namespace}`
    case 'POST':
      return p.name ? '' : apply()
    case 'PUT':
      return apply()
    case 'PATCH': {
      const revokes = p.plural === 'apikeys' && /"revoke":\s*true/.test(r.body ?? '')
      return revokes ? `freshet apikey revoke ${quote(p.name)}${namespace}` : ''
    }
    case 'DELETE':
      return `freshet delete ${target}${namespace}`
  }
  return ''
}

function parseBody(body) {
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}

/** The command for a request to the topics, consumer groups or schemas of a cluster. */
function clusterCommand(r) {
  const u = new URL(r.url, 'http://x')
  const m = /^\/clusters\/([^/]+)\/([^/]+)(\/.*)$/.exec(u.pathname)
  if (!m) return ''
  const [org, cluster] = [m[1], m[2]].map(decodeURIComponent)
  const request = {
    ...r,
    parts: m[3].split('/').slice(1).map(decodeURIComponent),
    query: u.searchParams,
    json: () => parseBody(r.body),
    run: (...words) => {
      const command = words.filter(w => w !== '').join(' ')
      return `freshet ${command} -n ${quote(org)} --cluster ${quote(cluster)}`
    },
  }
  const path = request.parts.join('/')
  if (path.startsWith('admin/rest/topics/v1/')) return messageCommand(request)
  if (path.startsWith('admin/v2/persistent/')) return topicCommand(request)
  if (path === 'rest-stream/admin/v1/topics') return request.run('topic list')
  if (path.startsWith('rest-stream/admin/v1/groups')) return groupCommand(request)
  return schemaCommand(request)
}

/** The name of a topic for a command: tenant and namespace are left out if they are the defaults. */
const topicName = parts => quote(parts.slice(0, 3).join('/').replace(/^public\/default\//, ''))

function messageCommand({ method, body, headers, parts, query, run }) {
  const t = parts.slice(4)
  if (t[3] === 'tail') return run('tail', topicName(t), query.get('from') === 'earliest' ? '--from earliest' : '')
  if (t.length === 4 && t[3] === 'message' && method === 'POST' && body && !body.startsWith('<')) {
    const key = headers?.['X-Msg-Partition-Key']
    const keyFlag = key && !headers['X-Msg-Partition-Key-Encoding'] ? `-k ${quote(key)}` : ''
    return run('produce', keyFlag, topicName(t), quote(body))
  }
  if (t[4] === 'message' && t.length === 5) {
    return method === 'POST'
      ? run('consume', topicName(t), `-s ${quote(t[3])} -c 1 --no-ack`)
      : run('ack', topicName(t), quote(t[3]), quote(String(body)))
  }
  return ''
}

function topicCommand({ method, body, parts, query, json, run }) {
  const t = parts.slice(3)
  const force = query.get('force') === 'true' ? '--force' : ''
  if (t.length === 3 || t[3] === 'partitions') {
    if (method === 'PUT') return run('topic create', topicName(t), t[3] ? `-p ${body}` : '')
    return method === 'DELETE' ? run('topic delete', topicName(t), force) : ''
  }
  if (t[3] === 'stats' || t[3] === 'partitioned-stats') return run('topic describe', topicName(t))
  if (t[3] !== 'subscription') return ''
  const subscription = quote(t[4])
  if (t.length === 5) {
    if (method === 'DELETE') return run('subscription delete', topicName(t), subscription, force)
    if (method !== 'PUT') return ''
    const start = json()
    const from = typeof start === 'string' ? start : start?.position ?? 'latest'
    return run('subscription create', topicName(t), subscription, `--from ${from}`)
  }
  if (t[5] === 'resetcursor') {
    const to = t[6] ? new Date(Number(t[6])).toISOString() : quote(String(json()))
    return run('subscription reset', topicName(t), subscription, `--to ${to}`)
  }
  return t[5] === 'position' ? run('subscription peek', topicName(t), subscription) : ''
}

function groupCommand({ method, parts, query, json, run }) {
  const group = parts[4]
  if (!group) return run('group list')
  const name = query.get('tenant')
  const tenant = name && name !== 'public' ? `--tenant ${quote(name)}` : ''
  if (parts[5] === 'offsets') {
    const offsets = json()?.offsets
    const o = offsets?.[0]
    if (!o?.position || offsets.length !== 1) return ''
    return run('group reset', quote(group), `--topic ${quote(o.topic_name)} --to ${o.position}`, tenant)
  }
  return run(`group ${method === 'DELETE' ? 'delete' : 'describe'}`, quote(group), tenant)
}

function schemaCommand({ method, parts, query, json, run }) {
  const s = parts[0] === 'stream' ? parts.slice(1) : parts
  const writes = method === 'PUT'
  if (s[0] === 'config' && s[1]) return run('schema level', quote(s[1]), writes ? json()?.compatibility ?? '' : '')
  if (s[0] === 'mode') return run('schema mode', writes ? json()?.mode ?? '' : '')
  if (s[0] === 'registry' && s[2] === 'diff') {
    const d = json()
    if (!d?.from?.version || !d.to?.version) return ''
    return run('schema diff', quote(d.from.subject), d.from.version, d.to.version)
  }
  if (s[0] === 'schemas' && s[1] === 'ids' && s.length === 3) return run('schema get', `--id ${s[2]}`)
  if (s[0] !== 'subjects' || method === 'POST') return ''
  if (method === 'DELETE') {
    return run('schema delete', quote(s[1]), s[3] ?? '', query.get('permanent') === 'true' ? '--permanent' : '')
  }
  if (s.length < 3) return run('schema list')
  return s[3] ? run('schema get', quote(s[1]), s[3] === 'latest' ? '' : s[3]) : run('schema list', quote(s[1]))
}
