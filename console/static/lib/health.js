// The health checks of the server.
import { get } from './api.js'

/** What each check of /readyz verifies. */
export const checkTexts = {
  ping: 'The process responds',
  log: 'The log is writable',
  startup: 'All components have started',
  clusters: 'The clusters are open and work',
  'etcd-quota': 'etcd has free space',
  etcd: 'etcd responds',
  'etcd-readiness': 'etcd is ready',
  shutdown: 'The server is not shutting down',
}

/** Reads the health checks. A response with failed checks is a result too, not an error. */
export async function readHealth(o) {
  let text
  try {
    text = await get('/readyz?verbose', { ...o, accept: '*/*', open: true })
  } catch (e) {
    if (!e.status) throw e
    text = e.message.includes('[') ? e.message : e.body?.message ?? e.message
  }
  const lines = [...String(text).matchAll(/^\[([+-])\](\S+) (.*)$/gm)]
  const checks = lines.map(m => ({ ok: m[1] === '+', name: m[2], text: m[3] }))
  return { ok: checks.length > 0 && checks.every(c => c.ok), checks }
}
