import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Gate } from '../support/faults.ts';
import { MAIN } from '../support/program.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TINY_WEIGHTS } from '../support/tiny-weights.ts';
import { answering, TestMember, YES } from '../upstreams/support.ts';
import { expectRefused, firstAsProcess, initializeData } from './support.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

const root = temporaryDirectory();
const data = join(root.path, 'data');
const token = join(root.path, 'token');
let members: readonly TestMember[];
beforeAll(async () => {
  await initializeData(data);
  writeFileSync(token, 'secret-token\n');
});
afterAll(() => root.remove());
afterEach(async () => {
  for (const member of members) await member.kill();
});

async function startMembers(...behaviours: ReturnType<typeof answering>[]): Promise<string> {
  members = await Promise.all(behaviours.map(() => TestMember.start()));
  for (const [index, member] of members.entries()) member.behaviour = behaviours[index] ?? member.behaviour;
  return members.map(({ address }) => address).join(',');
}

const { command, commandJson } = firstAsProcess();
const model = (...words: string[]) => command(['model', ...words, '--data', data]);
const refused = (upstream: string) => model('add', 'bad', '--upstream', upstream, '--price', '1');
const listed = () => commandJson(['model', 'list', '--data', data]);

describe('tds model add --upstream', () => {
  test('sends every server a health probe with the token, and then the model is open', async () => {
    const upstream = await startMembers(answering(200, YES), answering(200, YES));
    const added = await model(
      'add',
      'kev-4b',
      ...['--upstream', `${upstream}/`, '--protocol', 'systemone', '--upstream-model', 'kev'],
      ...['--token-file', token, '--price', '0.5'],
    );
    expect(added).toEqual({ code: 0, stdout: 'Added kev-4b, which is open.\n', stderr: '' });
    for (const { received } of members) {
      expect(received).toHaveLength(1);
      expect(received[0]).toMatchObject({ path: '/v1/systemone', authorization: 'Bearer secret-token' });
      expect(received[0]?.body).toStartWith('{"model":"kev",');
    }
    const addresses = members.map(({ address }) => address);
    expect(await listed()).toContainEqual({
      id: 'kev-4b',
      kind: 'decision',
      status: 'live',
      description: 'Answers typed questions about one record with a probability for every option.',
      context_tokens: 16_384,
      input_price_micros_per_million_tokens: 500_000,
      released_at_ms: expect.any(Number),
      upstreams: {
        protocol: 'systemone',
        addresses,
        draining: [],
        model: 'kev',
        token_file: token,
        ca_file: null,
      },
      aliases: [],
      state: null,
      drift_index: null,
      load_error: null,
      memory_bytes: null,
    });

    const [, second] = addresses;
    if (second === undefined) throw new Error('there are two members');
    expect(await model('drain', 'kev-4b', second)).toMatchObject({
      code: 0,
      stdout: `${second} gets no new requests for kev-4b.\n`,
    });
    const { stdout } = await model('list');
    expect(stdout).toContain(`${addresses[0]}, ${second} (draining)  systemone`);
    const doctor = ['doctor', '--data', data, '--gpu', 'none', '--model', TINY_WEIGHTS];
    const subject = 'upstreams of kev-4b';
    // A drained server is asked as any other is.
    const all = { subject, state: 'ok', detail: `${addresses.join(', ')} answer` };
    expect(await commandJson(doctor)).toContainEqual(all);
    await members[1]?.kill();
    expect(await commandJson(doctor)).toContainEqual({
      subject,
      state: 'warning',
      detail: expect.stringContaining(`${second} cannot be reached (`),
    });
    expect(await model('drain', 'kev-4b', second, '--end')).toMatchObject({
      code: 0,
      stdout: `${second} gets requests again for kev-4b.\n`,
    });
    expectRefused(
      await model('drain', 'kev-4b', 'http://10.9.9.9'),
      `kev-4b has no upstream http://10.9.9.9, only ${addresses.join(', ')}.`,
    );
    expectRefused(await model('drain', 'decision-1', second), 'decision-1 has no upstreams.');
    expectRefused(await model('reload', 'kev-4b'), 'kev-4b has no weights.');
  });

  test('gives a server the weight, the time and the token that stand behind its address, and keeps no token', async () => {
    await startMembers(answering(200, YES), answering(200, YES));
    const [one = '', two = ''] = members.map(({ address }) => address);
    const upstream = `${one},weight=3,timeout=20,${two},token-file=${token}`;
    const added = await model('add', 'weighted', '--upstream', upstream, '--timeout', '30', '--price', '1');
    expect(added).toEqual({ code: 0, stdout: 'Added weighted, which is open.\n', stderr: '' });
    expect(members.map(({ received }) => received[0]?.authorization)).toEqual([
      undefined,
      'Bearer secret-token',
    ]);
    const rows = JSON.stringify(await listed());
    expect(rows).toContain(
      `"answer_ms":30000,"members":${JSON.stringify({
        [one]: { weight: 3, answer_ms: 20_000 },
        [two]: { token_file: token },
      })}`,
    );
    expect(rows).not.toContain('secret-token');
    expect((await model('list')).stdout).toContain(`${one} (weight 3), ${two}  systemone`);
  });

  test.each([401, 403])('adds nothing where one server answers %d, and names the flag', async (status) => {
    const upstream = await startMembers(answering(200, YES), answering(status, 'no secret-token here'));
    const [, two] = members.map(({ address }) => address);
    const words = ['add', 'locked', '--upstream', upstream, '--price', '1'];
    const refusal = 'tds: An upstream of locked asks for a token, or for another one. Nothing was added.\n';
    expect(await model(...words)).toEqual({
      code: 1,
      stdout: '',
      stderr: `${two} answered with status ${status}. It asks for a token: give the file with it by --token-file, or for this server alone by ",token-file=PATH" behind its address.\n${refusal}`,
    });
    expect(await model(...words, '--token-file', token)).toEqual({
      code: 1,
      stdout: '',
      stderr: `${two} answered with status ${status}. It does not take the token in ${token}: see --token-file, or ",token-file=PATH" behind the address of one server.\n${refusal}`,
    });
  });

  test('says which server does not answer, and adds none where all of them do not, unless it stays closed', async () => {
    const upstream = await startMembers(answering(200, YES), answering(500, 'no secret-token here'));
    const [one, two] = members.map(({ address }) => address);
    const words = ['--upstream', upstream, '--token-file', token, '--price', '1'];
    expect(await model('add', 'half', ...words)).toEqual({
      code: 0,
      stdout: 'Added half, which is open.\n',
      stderr: `${two} answered with status 500.\n`,
    });
    await members[0]?.kill();
    const refused = await model('add', 'none', ...words);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toBe(
      `${one} cannot be reached (ECONNREFUSED).\n${two} answered with status 500.\n` +
        'tds: No upstream of none answers a health probe. With --closed it is added all the same.\n',
    );
    expect(await model('add', 'none', ...words, '--closed')).toMatchObject({
      code: 0,
      stdout: 'Added none, which is closed.\n',
    });
    expect(await model('open', 'none')).toMatchObject({ code: 0 });
  });

  test('names the servers that it waits for, when they take long', async () => {
    const gate = new Gate();
    const upstream = await startMembers(answering(200, YES), async (...asked) => {
      await gate.pass();
      await answering(200, YES)(...asked);
    });
    const [, slow] = members.map(({ address }) => address);
    const words = ['model', 'add', 'slow', '--upstream', upstream, '--price', '1', '--data', data];
    const child = Bun.spawn([process.execPath, MAIN, ...words], { stdout: 'pipe', stderr: 'pipe' });
    let said = '';
    for await (const piece of child.stderr.pipeThrough(new TextDecoderStream())) {
      said += piece;
      gate.open();
    }
    expect(said).toBe(`Waiting for ${slow}: a server may be loading its model, and has 120 seconds.\n`);
    expect(await child.stdout.text()).toBe('Added slow, which is open.\n');
  });

  test.each([
    ['ftp://10.0.0.2', 'another scheme'],
    ['http://user:password@10.0.0.2', 'a password'],
    ['http://10.0.0.2/?a=b', 'a query'],
    ['http://10.0.0.2,', 'nothing after a comma'],
    ['10.0.0.2:8080', 'no scheme'],
  ])('takes no address such as %s, with %s', async (upstream) => {
    members = [];
    const { code, stderr } = await refused(upstream);
    expect(code).toBe(2);
    expect(stderr).toContain('Give URLs such as http://10.0.0.2:8080');
  });

  test.each(['weight=0', 'weight=1.5', 'timeout=121', 'timeout=', 'token=secret', 'port=1'])(
    'takes no %s behind an address',
    async (piece) => {
      members = [];
      const upstream = `http://127.0.0.1:1,${piece}`;
      const { code, stderr } = await refused(upstream);
      expect(code).toBe(2);
      expect(stderr).toContain(
        /^(weight|timeout)=./.test(piece)
          ? 'It must be a whole number from 1 to'
          : 'Behind an address stand weight=…, timeout=…, token-file=…; a token stands in a file.',
      );
    },
  );

  test('takes either weights or upstreams, and needs a price', async () => {
    members = [];
    const upstream = ['--upstream', 'http://127.0.0.1:1'];
    expectRefused(
      await model('add', 'bad', ...upstream, '--weights', 'embedded', '--price', '1'),
      'Give one of --weights, --upstream and --tuning.',
    );
    expectRefused(
      await model('add', 'bad', ...upstream),
      'bad cannot be open without a price: give --price, or add it with --closed.',
    );
  });
});
