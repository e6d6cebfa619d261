// A server that remembers what prompts began with: prints its port, answers any chat or completion with a few tokens at once,
// and tells at /seen how many prompts came, and how many whole blocks of 512 words, and different ones among them: a block is
// its words and all before them, as in Mooncake's hash_ids. Run by replay.mjs; ends with its parent.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const BLOCK = 512;
const TOKENS = 4;
const different = new Set();
let prompts = 0;
let words = 0;
let blocks = 0;

function remember(text) {
  const said = text.split(' ');
  prompts++;
  words += said.length;
  const chain = createHash('sha1');
  for (let at = 0; at + BLOCK <= said.length; at += BLOCK) {
    chain.update(said.slice(at, at + BLOCK).join(' '));
    different.add(chain.copy().digest('base64'));
    blocks++;
  }
}

const event = (value) => `data: ${JSON.stringify(value)}\n\n`;
const delta = (content, finish = null) =>
  event({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content }, finish_reason: finish }] });

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify(
        request.url === '/seen'
          ? { prompts, words, blocks, different: different.size }
          : { object: 'list', data: [{ id: 'listener', object: 'model' }] },
      ),
    );
    return;
  }
  if (!/completions$/.test(request.url)) {
    response.writeHead(404).end();
    return;
  }
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const body = JSON.parse(Buffer.concat(pieces).toString('utf8'));
    if (!body.prompt && !body.messages) {
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no prompt"}}');
      return;
    }
    const text = body.prompt ?? body.messages.map((m) => m.content).join(' ');
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let k = 0; k < TOKENS; k++) response.write(delta(' token'));
    response.write(delta('', 'stop'));
    const input = text.split(' ').length;
    response.write(
      event({
        object: 'chat.completion.chunk',
        choices: [],
        usage: { prompt_tokens: input, completion_tokens: TOKENS, total_tokens: input + TOKENS },
      }),
    );
    response.end('data: [DONE]\n\n');
    remember(text);
  });
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
process.stdin.on('end', () => process.exit(0)).resume();
