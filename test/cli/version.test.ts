import { expect, test } from 'bun:test';
import { EMBEDDED_WEIGHTS, verifyWeights } from '../../native/engine.ts';
import { version } from '../../package.json' with { type: 'json' };
import { tds } from './support.ts';

test.each(['--version', '-V'])(
  'tds %s says version, commit, engine and the hash of the embedded weights',
  async (flag) => {
    const { code, stdout } = await tds([flag]);
    const { sha256 } = await verifyWeights(EMBEDDED_WEIGHTS);
    expect(code).toBe(0);
    const [first, commit, engine, weights] = stdout.split('\n');
    expect(first).toBe(`tds ${version}`);
    expect(commit).toMatch(/^commit ([0-9a-f]{12,40}(-dirty)?|unknown)$/);
    expect(engine).toMatch(/^evaluator (addon \(compiled .+\)|node-llama-cpp), llama\.cpp v[\d.]+$/);
    expect(weights).toBe(`weights decision-1, SHA-256 ${sha256}`);
  },
);
