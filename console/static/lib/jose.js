// Decryption of API keys with WebCrypto. Nothing in this module is sent to a server.
import { fromBase64, toBase64 } from './format.js'

function toPEM(label, data) {
  const lines = toBase64(data).match(/.{1,64}/g).join('\n')
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`
}

/** Creates a key pair. The public key is sent to the server, the private key stays with the user. */
export async function newKeyPair(bits = 2048) {
  const algorithm = {
    name: 'RSA-OAEP', modulusLength: bits, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-1',
  }
  const pair = await crypto.subtle.generateKey(algorithm, true, ['decrypt'])
  return {
    publicPEM: toPEM('PUBLIC KEY', await crypto.subtle.exportKey('spki', pair.publicKey)),
    privatePEM: toPEM('PRIVATE KEY', await crypto.subtle.exportKey('pkcs8', pair.privateKey)),
  }
}

/** Encodes an element of ASN.1 in DER. */
function der(tag, ...parts) {
  const length = parts.reduce((n, p) => n + p.length, 0)
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  const out = new Uint8Array(1 + head.length + length)
  out.set([tag, ...head])
  let at = 1 + head.length
  for (const p of parts) {
    out.set(p, at)
    at += p.length
  }
  return out
}

const rsaEncryption = new Uint8Array([6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0])

/** Converts PKCS #1, which older versions of openssl write, into PKCS #8, which browsers read. */
const pkcs1ToPKCS8 = key => der(0x30, new Uint8Array([2, 1, 0]), der(0x30, rsaEncryption), der(4, key))

/** The DER of the private key in a PEM file. */
export function privateKeyDER(pem) {
  const m = /-----BEGIN ([A-Z ]+)-----([\s\S]+?)-----END \1-----/.exec(pem)
  if (!m) throw new Error('This is not a PEM file: the line -----BEGIN PRIVATE KEY----- is missing.')
  const [, label, body] = m
  if (label.includes('PUBLIC')) throw new Error('This is the public key. Use the private key of the same pair.')
  if (label.includes('ENCRYPTED') || /Proc-Type|DEK-Info/.test(body)) {
    throw new Error('The private key is encrypted with a password. ' +
      'Decrypt it first: openssl pkey -in key.pem -out open.pem')
  }
  if (label === 'RSA PRIVATE KEY') return pkcs1ToPKCS8(fromBase64(body))
  if (label === 'PRIVATE KEY') return fromBase64(body)
  throw new Error(`The file has the type ${label}, which cannot decrypt API keys. Use an RSA private key.`)
}

const hashes = { 'RSA-OAEP': 'SHA-1', 'RSA-OAEP-256': 'SHA-256' }

async function contentKey(alg, wrapped, pkcs8) {
  try {
    const algorithm = { name: 'RSA-OAEP', hash: hashes[alg] }
    const key = await crypto.subtle.importKey('pkcs8', pkcs8, algorithm, false, ['decrypt'])
    const raw = await crypto.subtle.decrypt({ name: 'RSA-OAEP' }, key, fromBase64(wrapped))
    return await crypto.subtle.importKey('raw', raw, 'AES-GCM', false, ['decrypt'])
  } catch {
    throw new Error('This private key does not decrypt the token: it does not belong to the key pair of the API key.')
  }
}

/** Decrypts a compact JWE (RSA-OAEP or RSA-OAEP-256, AES-GCM) with a private key in PEM. */
export async function decryptJWE(jwe, pem) {
  const parts = jwe.trim().split('.')
  if (parts.length !== 5) throw new Error('The encrypted token is not a compact JWE: it does not have five parts.')
  const [header, wrapped, iv, text, tag] = parts
  const { alg, enc } = JSON.parse(new TextDecoder().decode(fromBase64(header)))
  if (!hashes[alg] || !/^A(128|256)GCM$/.test(enc)) {
    throw new Error(`The token is encrypted with ${alg} and ${enc}, which the console does not support.`)
  }
  const key = await contentKey(alg, wrapped, privateKeyDER(pem))
  const algorithm = { name: 'AES-GCM', iv: fromBase64(iv), additionalData: new TextEncoder().encode(header) }
  const encrypted = new Uint8Array([...fromBase64(text), ...fromBase64(tag)])
  return new TextDecoder().decode(await crypto.subtle.decrypt(algorithm, key, encrypted))
}
