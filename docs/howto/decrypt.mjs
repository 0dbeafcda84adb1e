// Decrypts the token of an API key: node decrypt.mjs private.pem < key.jwe
// A compact JWE (RFC 7516) has five parts in base64url: header, encrypted key,
// initialization vector, ciphertext, tag. The program uses WebCrypto only.
import { readFileSync } from 'node:fs'
import { webcrypto as crypto } from 'node:crypto'

const pem = readFileSync(process.argv[2], 'utf8').replace(/-----[A-Z ]+-----|\s/g, '')
const privateKey = await crypto.subtle.importKey('pkcs8', Buffer.from(pem, 'base64'),
  { name: 'RSA-OAEP', hash: 'SHA-1' }, false, ['unwrapKey'])

const [header, wrapped, iv, text, tag] = readFileSync(0, 'utf8').trim().split('.')
const bytes = part => Buffer.from(part, 'base64url')
const contentKey = await crypto.subtle.unwrapKey('raw', bytes(wrapped), privateKey,
  { name: 'RSA-OAEP' }, { name: 'AES-GCM' }, false, ['decrypt'])
const token = await crypto.subtle.decrypt(
  { name: 'AES-GCM', iv: bytes(iv), additionalData: Buffer.from(header) },
  contentKey, Buffer.concat([bytes(text), bytes(tag)]))
console.log(Buffer.from(token).toString())
