import { strongTuning } from '../tuning/strong-tuning.ts';
import { collidingTexts } from './colliding-texts.ts';
import type { OtherRequest } from './hostile-service.ts';

/** Bytes of every body here, nearly the most that is read. */
const BODY_BYTES = 1_000_000;

/** Questions and options, or levels, at most. */
const QUESTIONS = 64;
const OPTIONS = 255;

/** JSON that fills `bytes`, of members of an object or of items of an array. */
export interface Content {
  readonly kind: 'members' | 'items' | 'characters';
  /** A piece by its number; no two of one filling need be different. */
  readonly piece: (index: number) => string;
}

const COLLIDING = collidingTexts(50_000).map((text) => JSON.stringify(text));
const colliding = (index: number) => COLLIDING[index % COLLIDING.length] ?? '""';

/** The contents of hostile bodies. */
export const CONTENTS: Readonly<Record<string, Content>> = {
  'names that collide': { kind: 'members', piece: (index) => `${colliding(index)}:0` },
  'names of one character each, and on': { kind: 'members', piece: (index) => `"${index.toString(36)}":0` },
  'one name': { kind: 'members', piece: () => '"a":0' },
  'whole numbers as names': { kind: 'members', piece: (index) => `"${index}":0` },
  'names of escapes': {
    kind: 'members',
    piece: (index) => `"\\u${(0x4000 + (index % 0x8000)).toString(16)}":[]`,
  },
  'texts that collide': { kind: 'items', piece: colliding },
  'objects of names that collide': {
    kind: 'items',
    piece: (index) => `{${colliding(index)}:${colliding(index + 1)}}`,
  },
  digits: { kind: 'items', piece: () => '0' },
  'empty objects': { kind: 'items', piece: () => '{}' },
  'small objects': { kind: 'items', piece: () => '{"":0}' },
  'objects of nine members': {
    kind: 'items',
    piece: () => '{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}',
  },
  'small arrays': { kind: 'items', piece: () => '[0]' },
  'deep arrays': { kind: 'items', piece: () => `${'['.repeat(58)}0${']'.repeat(58)}` },
  'deep objects': { kind: 'items', piece: () => `${'{"":'.repeat(58)}0${'}'.repeat(58)}` },
  'empty texts': { kind: 'items', piece: () => '""' },
  'integers of 20 digits': { kind: 'items', piece: () => '12345678901234567890' },
  'integers of 300 digits': { kind: 'items', piece: () => '7'.repeat(300) },
  'fractions of 800 digits': { kind: 'items', piece: () => `0.${'17'.repeat(400)}` },
  'numbers that are written in 309 digits': { kind: 'items', piece: () => '1e308' },
  exponents: { kind: 'items', piece: (index) => `${index}.5e-${index % 300}` },
  'one number': { kind: 'characters', piece: () => '7' },
  letters: { kind: 'characters', piece: () => 'a' },
  words: { kind: 'characters', piece: () => 'late ' },
  spaces: { kind: 'characters', piece: () => ' ' },
  signs: { kind: 'characters', piece: (index) => '~}{|^%#@&*<>;:+='.charAt((index * 7 + (index >> 4)) % 16) },
  'signs of three bytes': {
    kind: 'characters',
    piece: (index) => String.fromCharCode(0x4e00 + ((index * 7919) % 20_000)),
  },
  'line breaks': { kind: 'characters', piece: () => '\\n' },
  escapes: { kind: 'characters', piece: () => '\\u0001' },
  'escaped surrogates': { kind: 'characters', piece: () => '\\ud83d\\ude00' },
  'lone surrogates': { kind: 'characters', piece: () => '\\ud83d' },
};

/** `content` as one value of about `bytes`. */
function filled({ kind, piece }: Content, bytes: number, start = 0): string {
  const pieces: string[] = [];
  for (let index = start, size = 0; ; index += 1) {
    const next = piece(index);
    size += Buffer.byteLength(next) + (kind === 'characters' ? 0 : 1);
    if (size > bytes) break;
    pieces.push(next);
  }
  if (kind === 'members') return `{${pieces.join(',')}}`;
  if (kind === 'items') return `[${pieces.join(',')}]`;
  const text = pieces.join('');
  return piece(0) === '7' ? text : `"${text}"`;
}

/** Numbers, as an ordinary tuning is full of. */
export const NUMBERS: Content = { kind: 'items', piece: (index) => String(Math.sin(index)) };

/** The most bytes of a change of the console, and characters of a message to agents, less those around the content. */
const SMALL_ROOM = 65_000;

const [HEADER = '', LINE = '', ...OTHER_LINES] = strongTuning({
  weights_sha256: 'f'.repeat(64),
  profile: 'other',
}).split('\n');

/** `content` as the members of an object, or as one of them. */
function objectOf(content: Content, bytes: number): string {
  const value = filled(content, bytes);
  return content.kind === 'members' ? value : `{"a":${value}}`;
}

const tuningOf = (...lines: readonly string[]) => [...lines, ...OTHER_LINES].join('\n');

/** Where other bodies than those of `/v1` can be full of it. */
export const OTHER_PLACES: Readonly<
  Record<string, (content: Content, own_models_path: string) => OtherRequest>
> = {
  'a sign-in': (content) => ({
    path: '/console/api/sign-in',
    sender: 'stranger',
    body: objectOf(content, SMALL_ROOM),
  }),
  'a message of an agent': (content) => ({
    path: '/mcp',
    sender: 'key',
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${objectOf(content, SMALL_ROOM)}}`,
  }),
  'the first line of a tuning': (content, path) => ({
    path: `${path}?name=tuned`,
    sender: 'owner',
    body: tuningOf(HEADER.replace('"profile":"other"', `"profile":${filled(content, ROOM)}`), LINE),
  }),
  'a line of a tuning': (content, path) => ({
    path: `${path}?name=tuned`,
    sender: 'owner',
    body: tuningOf(HEADER, LINE.replace('"words":null', `"words":${filled(content, ROOM)}`)),
  }),
  'a question of a tuning': (content, path) => ({
    path: `${path}?name=tuned`,
    sender: 'owner',
    body: tuningOf(HEADER, LINE.replace('"question":{', `"question":{"extra":${filled(content, ROOM)},`)),
  }),
};

/** As many cookies as the head of a request has room for. */
export const COLLIDING_COOKIES = collidingTexts(938)
  .map((name) => `${name}=`)
  .join('; ');

function body(state: string, questions: string, more = ''): string {
  return `{"model":"decision-1",${more}"state":${state},"questions":${questions}}`;
}

function many(count: number, write: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => write(index)).join(',');
}

const ROOM = BODY_BYTES - 2_000;
const NOUL = '{"q":{"type":"noul","instructions":"Is it late?"}}';

/** Pieces of a value a content has a question, so that no two questions are the same. */
const PIECES_APART = 100_000;

/** Where a body can be full of it: bodies that reach the model's plan where the content allows it. */
export const PLACES: Readonly<Record<string, (content: Content) => string>> = {
  'the record': (content) => body(filled(content, ROOM), NOUL),
  'a value of the record': (content) => body(`{"a":[{"b":${filled(content, ROOM)}}]}`, NOUL),
  'a field that nobody knows': (content) => body('"x"', NOUL, `"extra":${filled(content, ROOM)},`),
  'the body itself': (content) =>
    content.kind === 'members'
      ? `{"model":"decision-1",${filled(content, ROOM).slice(1)}`
      : filled(content, ROOM),
  'the questions': (content) => body('"x"', filled(content, ROOM)),
  'a question': (content) => body('"x"', `{"q":{"type":"noul","extra":${filled(content, ROOM)}}}`),
  'the criteria of a choice': (content) =>
    body('"x"', `{"q":{"type":"choice","criteria":${filled(content, ROOM)}}}`),
  'the levels of a score': (content) =>
    body('"x"', `{"q":{"type":"score","criteria":${filled(content, ROOM)}}}`),
  'the instructions of all questions': (content) =>
    body(
      '"x"',
      `{${many(QUESTIONS, (index) => `"q${index}":{"type":"noul","instructions":${filled(content, ROOM / QUESTIONS - 50, index * PIECES_APART)}}`)}}`,
    ),
  'the descriptions of all nouls': (content) =>
    body(
      '"x"',
      `{${many(QUESTIONS, (index) => {
        const [yes, no] = [0, 1].map((side) =>
          filled(content, ROOM / QUESTIONS / 2 - 50, (2 * index + side) * PIECES_APART),
        );
        return `"q${index}":{"type":"noul","criteria":{"true":${yes},"no":${no}}}`;
      })}}`,
    ),
  'the descriptions of all options': (content) =>
    body(
      '"x"',
      `{${many(QUESTIONS, (index) => {
        const options = many(OPTIONS, (option) => {
          const number = index * OPTIONS + option;
          return `${colliding(number)}:${filled(content, ROOM / QUESTIONS / OPTIONS - 24, number * 50)}`;
        });
        return `"q${index}":{"type":"choice","criteria":{${options}}}`;
      })}}`,
    ),
  'all levels': (content) =>
    body(
      '"x"',
      `{${many(QUESTIONS, (index) => {
        const levels = many(OPTIONS, (level) =>
          filled(content, ROOM / QUESTIONS / OPTIONS - 3, (index * OPTIONS + level) * 50),
        );
        return `"q${index}":{"type":"score","criteria":[${levels}]}`;
      })}}`,
    ),
};

/** A body of the same size as clients send them: a list of records. */
export const ORDINARY_BODY: Uint8Array<ArrayBuffer> = new Uint8Array(
  Buffer.from(
    PLACES['the record']?.({
      kind: 'items',
      piece: (index) =>
        `{"order":${8_000 + index},"customer":"c${index}@example.com","text":"The lamp came late, and it was broken.","paid":true}`,
    }) ?? '',
  ),
);
