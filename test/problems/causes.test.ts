import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { SQL } from 'bun';
import fc from 'fast-check';
import { AddressRefused, SettingRefused } from '../../db/postgres/connection.ts';
import { LedgerUnavailable } from '../../db/postgres/ledger-batches.ts';
import { SessionDropped } from '../../db/postgres/session.ts';
import { SchemaRefused } from '../../db/schema-state.ts';
import { PragmaRefused } from '../../db/sqlite/connection.ts';
import { WriteQueueFull } from '../../db/sqlite/group-commit.ts';
import { TransactionEnded, TransactionStalled } from '../../db/sqlite/transactions.ts';
import {
  AddonUnavailable,
  DeviceUnavailable,
  EngineFailed,
  EngineOverloaded,
  EvaluationFailed,
  EvaluationTimedOut,
  SetupError,
  WeightsError,
} from '../../native/engine.ts';
import { HoldNotOpen, UnknownAccount } from '../../src/ledger/errors.ts';
import { PaymentProviderFailed } from '../../src/payments/provider.ts';
import { causesOf, ThreadFailed, threadFailure } from '../../src/problems/causes.ts';
import { ModelUnavailable } from '../../src/served-models/model-answerer.ts';
import { NestedTransaction } from '../../src/store/store.ts';
import { inTime, TookTooLong } from '../../src/time/in-time.ts';
import { PruneRefused } from '../../src/usage/prune-refused.ts';
import { rejection } from '../support/rejection.ts';

/** Returns the error that `work` throws. */
function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

describe('messages', () => {
  const OURS = [
    AddressRefused,
    AddonUnavailable,
    DeviceUnavailable,
    EngineFailed,
    EngineOverloaded,
    EvaluationFailed,
    EvaluationTimedOut,
    HoldNotOpen,
    LedgerUnavailable,
    ModelUnavailable,
    NestedTransaction,
    PaymentProviderFailed,
    PragmaRefused,
    PruneRefused,
    SchemaRefused,
    SessionDropped,
    SettingRefused,
    SetupError,
    TookTooLong,
    TransactionEnded,
    TransactionStalled,
    UnknownAccount,
    WeightsError,
    WriteQueueFull,
  ];
  test.each(OURS.map((Class) => [Class.name, Class] as const))('of %s are kept', (name, Class) => {
    expect(causesOf(new Class('what to do'))).toMatchObject([{ error: name, message: 'what to do' }]);
  });

  test('say what an answer was waited for', async () => {
    const late = inTime(new Promise(() => undefined), 1, 'the lease was not renewed');
    expect(causesOf(await rejection(late))).toMatchObject([
      { error: 'TookTooLong', message: 'the lease was not renewed' },
    ]);
  });

  test('are bounded', () => {
    const [cause] = causesOf(new AddonUnavailable('x'.repeat(100_000)));
    expect(cause?.message?.length).toBe(1_000);
  });
});

describe('what a client wrote', () => {
  const SECRET = 'zqsecretqz';
  const KEY = `sk_svc_${'7'.repeat(32)}`;
  const rows: readonly (readonly [string, () => unknown])[] = [
    ['a JSON error', () => JSON.parse(`{"state": ${SECRET}}`)],
    ['an error of SQLite', () => new Database(':memory:').query(`SELECT ${SECRET}`)],
    [
      'a constraint of SQLite',
      () => new Database(':memory:').query('SELECT json(?)').all(`${SECRET} ${KEY}`),
    ],
    ['a header', () => new Headers({ authorization: `${KEY}\u{1f512}` })],
    ['a URL', () => new URL(`//${SECRET} ${KEY}`)],
    ['a property', () => Reflect.get(Object(JSON.parse('null')), SECRET)[KEY]],
    [
      'an error of PostgreSQL',
      () => {
        throw new SQL.PostgresError(`invalid input syntax: ${SECRET}`, {
          code: 'ERR_POSTGRES_SERVER_ERROR',
          errno: '22P02',
          detail: KEY,
          severity: 'ERROR',
        });
      },
    ],
    ['something that is no error', () => throwIt({ SECRET, KEY })],
  ];
  function throwIt(value: unknown): never {
    throw value;
  }

  test.each(rows)('in %s is not kept, at any depth', (_, work) => {
    const error = thrownBy(work);
    const causes = causesOf(new ModelUnavailable('no', { cause: new Error(SECRET, { cause: error }) }));
    expect(causes).toHaveLength(3);
    expect(JSON.stringify(causes)).not.toContain(SECRET);
    expect(JSON.stringify(causes)).not.toContain(KEY);
  });

  test('is not kept where its lines look like frames of a stack', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 5 }),
        fc.boolean(),
        (texts, is_ours) => {
          const lines = texts.flatMap((text) => [
            text,
            `    at ${SECRET} (/src/app.ts:1:1)`,
            ` at ${SECRET}`,
          ]);
          const message = `${lines.join('\n')}\n    at ${SECRET}`;
          const error = is_ours
            ? new HoldNotOpen('fixed', { cause: new Error(message) })
            : new TypeError(message);
          const causes = causesOf(error);
          expect(JSON.stringify(causes)).not.toContain(SECRET);
          // And the frames themselves are there.
          for (const { at } of causes) expect(at.join()).toContain('causes.test.ts');
        },
      ),
    );
  });

  test('is not kept as the name or the code of an error', () => {
    const error = Object.assign(new Error('no'), { name: `${SECRET} ${KEY}`, code: `${SECRET} ${KEY}` });
    const [cause] = causesOf(error);
    expect(cause?.error).toBe('Error');
    expect(cause?.code).toBeUndefined();
  });
});

describe('causes', () => {
  test('have the codes of SQLite and of the system', () => {
    const sqlite = thrownBy(() => new Database(':memory:').query('SELECT * FROM nowhere').all());
    const file = thrownBy(() => readFileSync('/nowhere/at/all'));
    expect(causesOf(new Error('outer', { cause: sqlite }))).toMatchObject([
      { error: 'Error' },
      { error: 'SQLiteError', code: 'SQLITE_ERROR' },
    ]);
    expect(causesOf(file)).toMatchObject([{ error: 'Error', code: 'ENOENT' }]);
  });

  test('come over from a thread', () => {
    const inner = new WeightsError('cut', { cause: Object.assign(new Error('x'), { code: 'EIO' }) });
    const { failed } = structuredClone(threadFailure(inner));
    expect(causesOf(new ThreadFailed(failed.message, failed.causes))).toMatchObject([
      { error: 'ThreadFailed' },
      { error: 'WeightsError', message: 'cut' },
      { error: 'Error', code: 'EIO' },
    ]);
  });

  test('end, also where an error is its own cause', () => {
    const error = new Error('circle');
    error.cause = error;
    expect(causesOf(error)).toHaveLength(8);
  });
});
