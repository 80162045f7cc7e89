// node engine.mjs SUITE [ID…]: the suite's own server and its own engine, for browsers, with somebody else as the browser.
//
// Each request of a test is a line of JSON on standard output; what came of it is expected as a line on standard input. The last
// line on standard output has how each test ended. ID…: these tests alone.
import http from 'http'
import path from 'path'
import process from 'process'
import readline from 'readline'
import { pathToFileURL } from 'url'

const [suite, ...ids] = process.argv.slice(2)
const load = file => import(pathToFileURL(path.join(suite, file)))
const say = (words, then) => process.stdout.write(JSON.stringify(words) + '\n', then)
// Standard output is the client's.
console.log = console.error

// The suite's server, for this machine alone and on a port that is free. It reads in Req-Num which request of a test it gets.
// The client says that in X-Request-Id: a field that nobody knows may say who asks, so it would have answers of its own.
let server
const createServer = http.createServer
http.createServer = handle => {
  server = createServer((request, response) => {
    request.headers['req-num'] = request.headers['x-request-id']
    handle(request, response)
  })
  server.listen = () => http.Server.prototype.listen.call(server, 0, '127.0.0.1')
  return server
}
Object.assign(process.env, { npm_config_protocol: 'http', npm_config_port: '0', npm_config_pidfile: '/dev/null' })
await load('test-engine/server/server.mjs')
if (!server.listening) await new Promise(resolve => server.once('listening', resolve))
const base = `http://127.0.0.1:${server.address().port}`

const waiting = new Map()
readline.createInterface({ input: process.stdin }).on('line', line => {
  const answer = JSON.parse(line)
  waiting.get(answer.number)(answer)
  waiting.delete(answer.number)
})

let count = 0
async function download (url, init) {
  const number = ++count
  const headers = init.headers.map(([name, value]) => [name === 'Req-Num' ? 'X-Request-Id' : name, value])
  const answer = await new Promise(resolve => {
    waiting.set(number, resolve)
    say({ number, url, headers, method: init.method, body: init.body, cache: init.cache, redirect: init.redirect })
  })
  if (answer.error) throw new TypeError(answer.error)
  return { status: answer.status, headers: new Headers(answer.headers), text: async () => answer.body }
}

// What the engine tells its server, and asks of it, is no part of a test.
const ask = fetch
globalThis.fetch = (url, init) => url.startsWith(`${base}/test/`) ? download(url, init) : ask(url, init)

const suites = (await load('tests/index.mjs')).default
const { runTests, getResults } = await load('test-engine/client/runner.mjs')
const chosen = suites.map(({ tests }) => ({ tests: tests.filter(({ id }) => !ids.length || ids.includes(id)) }))
await runTests(chosen, globalThis.fetch, true, base)
const results = getResults()
say({
  tests: suites.flatMap(({ tests }) => tests).filter(({ id }) => id in results).map(({ id, name, kind, depends_on: needs }) =>
    ({ id, name, kind: kind || 'required', needs: needs || [], result: results[id] }))
}, () => process.exit())
