// Names of topics.
/** A name of the topic list: a bare topic, tenant.namespace.topic, or the full name. */
export function parseTopic(text) {
  const full = /^(?:persistent:\/\/)?([^/]+)\/([^/]+)\/(.+)$/s.exec(text)
  if (full) return { tenant: full[1], namespace: full[2], topic: full[3] }
  const [tenant, namespace, ...rest] = text.split('.')
  if (rest.length && tenant && namespace) return { tenant, namespace, topic: rest.join('.') }
  return { tenant: 'public', namespace: 'default', topic: text }
}
