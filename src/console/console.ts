import { type RequestContext, RequestContexts } from '../http/context.ts';
import { consoleApi } from './api/api.ts';
import type { ConsoleServices } from './api/services.ts';

/** The console: its pages, and the API that they talk to. */
export interface Console {
  /** Answers a request of any path under `/console`. */
  handle(request: Request, context: RequestContext): Promise<Response>;
}

/** Makes the console. Nothing is read or bundled before the first request. */
export function openConsole(services: ConsoleServices): Console {
  const contexts = new RequestContexts(() => {
    throw new Error('the console was asked without a context');
  });
  const api = consoleApi(services, contexts);
  return {
    async handle(request, context) {
      contexts.keep(request, context);
      return await api.handle(request);
    },
  };
}
