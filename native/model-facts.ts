import { excerpt } from '../src/errors/error-message.ts';
import { systemErrorCode } from '../src/errors/system-error-code.ts';
import { WeightsError } from './errors.ts';
import { GgufDamaged, type GgufHeader, type GgufValue, readGgufHeader } from './gguf-file.ts';
import type { Vocabulary } from './plan/vocabulary.ts';
import type { PreTokenizer } from './pre-tokenizer.ts';

/** The facts in a GGUF file that the choice of a prompt profile needs. */
export interface ModelFacts {
  /** The positions for which the model was made; 0 if the file has no 32-bit number, as llama.cpp reads it. */
  readonly trained_context_tokens: number;
  readonly vocabulary: Vocabulary;
  readonly pre_tokenizer: PreTokenizer;
  /** The Jinja template of a chat model, or undefined. */
  readonly chat_template: string | undefined;
}

/** GGUF's `token_type`: 3 is a control token, 4 a user-defined one. */
const SPECIAL_TOKEN_TYPES: ReadonlySet<unknown> = new Set([3, 4]);
const TOKENS = 'tokenizer.ggml.tokens';
const TOKEN_TYPES = 'tokenizer.ggml.token_type';
const READ_ARRAYS: ReadonlySet<string> = new Set([TOKENS, TOKEN_TYPES]);

/** Reads the metadata of the GGUF file at `path` (the first part of a split one). Throws `WeightsError`. */
export async function readModelFacts(path: string): Promise<ModelFacts> {
  const { metadata } = await readHeader(path, (key) => READ_ARRAYS.has(key));
  const text = (key: string) => textOf(metadata.get(key));
  const number = (key: string) => numberOf(metadata.get(key));
  const architecture = text('general.architecture');
  const model = text('tokenizer.ggml.model');
  const tokens = metadata.get(TOKENS);
  if (architecture === undefined || model === undefined || !isList(tokens) || !tokens.every(isText)) {
    throw unusable(path, 'it lacks an architecture or a vocabulary');
  }
  const types = metadata.get(TOKEN_TYPES);
  const begins_with_bos = metadata.get('tokenizer.ggml.add_bos_token');
  return {
    trained_context_tokens: number(`${architecture}.context_length`) ?? 0,
    vocabulary: {
      texts: tokens,
      special: new Set(
        (isList(types) ? types : []).flatMap((type, id) => (SPECIAL_TOKEN_TYPES.has(type) ? [id] : [])),
      ),
      bos: number('tokenizer.ggml.bos_token_id'),
      eos: number('tokenizer.ggml.eos_token_id'),
      // Without the entry, SentencePiece models begin with it and byte-pair ones do not.
      begins_with_bos: typeof begins_with_bos === 'boolean' ? begins_with_bos : model === 'llama',
    },
    pre_tokenizer: { model, pre: text('tokenizer.ggml.pre') },
    chat_template: text('tokenizer.chat_template'),
  };
}

/**
 * Reads the header of the GGUF file at `path`, any part of a model. Throws `WeightsError` if a count or a length is
 * impossible, because llama.cpp would use unbounded time and memory.
 */
export async function readHeader(path: string, wantsArray?: (key: string) => boolean): Promise<GgufHeader> {
  try {
    return await readGgufHeader(path, wantsArray);
  } catch (error) {
    if (error instanceof GgufDamaged) throw unusable(path, error.message, error);
    throw unusable(path, `it cannot be read: ${systemErrorCode(error) ?? error}`, error);
  }
}

function unusable(path: string, reason: string, cause?: unknown): WeightsError {
  return new WeightsError(`${path} is not a usable GGUF model (${excerpt(reason)}): download it again.`, {
    cause,
  });
}

function isList(value: GgufValue | undefined): value is Extract<GgufValue, readonly unknown[]> {
  return Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function textOf(value: GgufValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function numberOf(value: GgufValue | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
