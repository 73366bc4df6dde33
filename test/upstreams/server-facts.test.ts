import { expect, test } from 'bun:test';
import type { UpstreamPool } from '../../src/store/catalog-records.ts';
import { fingerprintOf, NO_FACTS, serverFacts } from '../../src/upstreams/server-facts.ts';

/** The list of llama.cpp v0.5.0's llama-server for decision-1, without duplicates. */
const LLAMA_SERVER = {
  models: [{ name: 'kev', model: 'kev', modified_at: '', size: '', digest: '', type: 'model' }],
  object: 'list',
  data: [
    {
      id: 'kev',
      aliases: ['kev-latest'],
      tags: [],
      object: 'model',
      created: 1_795_380_263,
      owned_by: 'llamacpp',
      meta: {
        vocab_type: 2,
        n_vocab: 49_152,
        n_ctx: 2_048,
        n_ctx_train: 16_384,
        n_embd: 576,
        n_params: 84_953_664,
        size: 90_319_104,
        ftype: 'Q8_0',
      },
    },
  ],
};
/** The list of vLLM 0.32.0, under other names and with another length. The permission has another id each time. */
const VLLM = {
  object: 'list',
  data: [
    {
      id: 'kev',
      object: 'model',
      created: 1_795_380_263,
      owned_by: 'vllm',
      root: '/models/kev-4b',
      parent: null,
      max_model_len: 32_768,
      permission: [
        {
          id: 'modelperm-1',
          object: 'model_permission',
          created: 1_795_380_263,
          allow_create_engine: false,
          allow_sampling: true,
          allow_logprobs: true,
          allow_search_indices: false,
          allow_view: true,
          allow_fine_tuning: false,
          organization: '*',
          group: null,
          is_blocking: false,
        },
      ],
    },
  ],
};
const changed = (list: object, from: string | number, to: string | number) =>
  JSON.stringify(list).replaceAll(String(from), String(to));

test('are the context and what tells models apart, and no time or place', () => {
  const llama = serverFacts(JSON.stringify(LLAMA_SERVER), null);
  expect(llama.context_tokens).toBe(2_048);
  const named = serverFacts(JSON.stringify(LLAMA_SERVER), 'kev-latest');
  expect(named).toEqual({ ...llama, named: [] });
  expect(serverFacts(changed(LLAMA_SERVER, 1_795_380_263, 7), 'kev-latest')).toEqual(named);
  expect(serverFacts(changed(LLAMA_SERVER, '"n_ctx":2048', '"n_ctx":4096'), null).model).toBe(llama.model);
  expect(serverFacts(changed(LLAMA_SERVER, 84_953_664, 84_953_665), null).model).not.toBe(llama.model);
  expect(serverFacts(changed(LLAMA_SERVER, 'Q8_0', 'Q4_0'), null).model).not.toBe(llama.model);
  const vllm = serverFacts(JSON.stringify(VLLM), 'kev');
  expect(vllm.context_tokens).toBe(32_768);
  expect(serverFacts(changed(VLLM, 1_795_380_263, 7), 'kev')).toEqual(vllm);
  expect(serverFacts(changed(VLLM, 'modelperm-1', 'modelperm-2'), 'kev')).toEqual(vllm);
  expect(serverFacts(changed(VLLM, 'kev-4b', 'kev-5b'), 'kev').model).not.toBe(vllm.model);
});

test.each(['', 'no json', '[]', '{}', '{"data":[]}', '{"data":[7]}', JSON.stringify(VLLM)])(
  'are none where a list has no such model: %s',
  (list) => {
    expect(serverFacts(list, 'other')).toEqual(NO_FACTS);
  },
);

test('make a fingerprint with all that an answer depends on', () => {
  const pool: UpstreamPool = {
    protocol: 'openai',
    addresses: ['http://10.0.0.2:8000'],
    draining: [],
    model: 'kev',
    token_file: null,
    ca_file: null,
    vocabulary: { path: '/a.gguf', sha256: '1'.repeat(64), profile: 'codes-v1' },
  };
  const facts = serverFacts(JSON.stringify(VLLM), 'kev');
  const vocabulary = { path: '/a.gguf', sha256: '2'.repeat(64), profile: 'codes-v1' };
  const others = [
    fingerprintOf({ ...pool, model: null }, facts, 'one'),
    fingerprintOf({ ...pool, protocol: 'llama-server' }, facts, 'one'),
    fingerprintOf({ ...pool, vocabulary }, facts, 'one'),
    fingerprintOf(pool, NO_FACTS, 'one'),
    fingerprintOf(pool, facts, 'two'),
  ];
  const own = fingerprintOf(pool, facts, 'one');
  expect(new Set([own, ...others]).size).toBe(6);
  // Neither the place of a server nor of the file is part of it.
  const moved = { ...pool, addresses: ['http://10.0.0.3:8000'], draining: ['http://10.0.0.3:8000'] };
  expect(fingerprintOf(moved, facts, 'one')).toBe(own);
});
