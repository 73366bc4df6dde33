import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

const Attribute = Type.Object({
  key: Type.String(),
  value: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()])),
});

const Span = Type.Object({
  traceId: Type.String(),
  spanId: Type.String(),
  parentSpanId: Type.Optional(Type.String()),
  name: Type.String(),
  kind: Type.Number(),
  startTimeUnixNano: Type.String(),
  endTimeUnixNano: Type.String(),
  attributes: Type.Array(Attribute),
  status: Type.Object({ code: Type.Number() }),
});

const Posted = Type.Object({
  resourceSpans: Type.Array(
    Type.Object({
      resource: Type.Object({ attributes: Type.Array(Attribute) }),
      scopeSpans: Type.Array(Type.Object({ spans: Type.Array(Span) })),
    }),
  ),
});

/** One span as a collector sees it. */
export interface ReceivedSpan extends Omit<Static<typeof Span>, 'attributes'> {
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
}

/** The content of one post. */
interface Post {
  readonly path: string;
  readonly headers: Headers;
  readonly text: string;
}

function valuesOf(attributes: readonly Static<typeof Attribute>[]): ReceivedSpan['attributes'] {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

/** A collector: takes spans by OTLP as JSON over HTTP, on a free port. */
export class OtlpReceiver implements AsyncDisposable {
  readonly posts: Post[] = [];
  readonly #server: ReturnType<typeof Bun.serve>;

  /** `answer` is what every post gets. */
  constructor(answer: () => Response | Promise<Response> = () => Response.json({})) {
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: async (request) => {
        const { headers, url } = request;
        this.posts.push({ path: new URL(url).pathname, headers, text: await request.text() });
        return await answer();
      },
    });
  }

  /** The collector's address, as an operator sets it. */
  get endpoint(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** All that was posted. Throws where it is no OTLP. */
  get spans(): readonly ReceivedSpan[] {
    return this.#posted()
      .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
      .map((span) => ({ ...span, attributes: valuesOf(span.attributes) }));
  }

  /** The resource attributes of the posts. */
  get resources(): readonly ReceivedSpan['attributes'][] {
    return this.#posted().map(({ resource }) => valuesOf(resource.attributes));
  }

  #posted() {
    return this.posts.flatMap(({ text }) => Value.Parse(Posted, JSON.parse(text)).resourceSpans);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}
