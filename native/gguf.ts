import { readGgufFileInfo } from 'node-llama-cpp';
import { WeightsError } from './errors.ts';
import type { Vocabulary } from './plan/vocabulary.ts';
import type { PreTokenizer } from './pre-tokenizer.ts';

/** What a GGUF file says of its model: what choosing a prompt profile needs. */
export interface ModelFacts {
  readonly architecture: string;
  /** Positions that the model was made for. */
  readonly trained_context_tokens: number;
  readonly vocabulary: Vocabulary;
  readonly pre_tokenizer: PreTokenizer;
  /** The Jinja template of a chat model, or undefined. */
  readonly chat_template: string | undefined;
}

/** GGUF's `token_type`: 3 is a control token, 4 a user-defined one. */
const SPECIAL_TOKEN_TYPES: ReadonlySet<number> = new Set([3, 4]);

/** Reads the metadata of the GGUF file at `path` (the first part of a split one). Throws `WeightsError`. */
export async function readModelFacts(path: string): Promise<ModelFacts> {
  try {
    const { metadata, architectureMetadata } = await readGgufFileInfo(path, {
      sourceType: 'filesystem',
      readTensorInfo: false,
      spliceSplitFiles: false,
      logWarnings: false,
      ignoreKeys: ['tokenizer.ggml.merges', 'tokenizer.ggml.scores'],
    });
    const { ggml, chat_template } = metadata.tokenizer;
    return {
      architecture: metadata.general.architecture,
      trained_context_tokens: architectureMetadata.context_length ?? 0,
      vocabulary: {
        texts: ggml.tokens,
        special: new Set(
          (ggml.token_type ?? []).flatMap((type, id) => (SPECIAL_TOKEN_TYPES.has(type) ? [id] : [])),
        ),
        bos: ggml.bos_token_id,
        eos: ggml.eos_token_id,
        // Where a file does not say, SentencePiece models begin with it and byte-pair ones do not.
        begins_with_bos: ggml.add_bos_token ?? ggml.model === 'llama',
      },
      pre_tokenizer: { model: ggml.model, pre: ggml.pre },
      chat_template,
    };
  } catch (error) {
    throw new WeightsError(
      `${path} is not a usable GGUF model (its metadata cannot be read): download it again.`,
      {
        cause: error,
      },
    );
  }
}
