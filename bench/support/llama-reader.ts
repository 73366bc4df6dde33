import { getLlama, type Token } from 'node-llama-cpp';
import { EMBEDDED_WEIGHTS } from '../../native/engine.ts';

/** The tokens of one of llama.cpp's batches. */
export const LLAMA_BATCH_TOKENS = 512;

/** llama.cpp's own reading of the embedded weights, without the engine. */
interface LlamaReader {
  /** Returns the first `count` tokens of a text. */
  tokens(text: string, count: number): Token[];
  /** Reads the tokens as one sequence, anew each time. */
  read(tokens: Token[]): Promise<void>;
}

/** Loads the weights into node-llama-cpp on the CPU, with flash attention. */
export async function openLlamaReader(threads: number, context_tokens: number): Promise<LlamaReader> {
  const llama = await getLlama({ build: 'never', gpu: false, maxThreads: 0, progressLogs: false });
  const model = await llama.loadModel({ modelPath: EMBEDDED_WEIGHTS });
  const context = await model.createContext({
    contextSize: context_tokens,
    batchSize: LLAMA_BATCH_TOKENS,
    threads,
    flashAttention: true,
  });
  const sequence = context.getSequence();
  return {
    tokens: (text, count) => model.tokenize(text).slice(0, count),
    async read(tokens) {
      await sequence.clearHistory();
      await sequence.evaluateWithoutGeneratingNewTokens(tokens);
    },
  };
}
