import { createServer, type Socket } from 'node:net';

/** A mail as an SMTP server received it. */
export interface ReceivedMail {
  /** The addresses of the envelope. */
  readonly from: string;
  readonly to: readonly string[];
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
}

/** A small SMTP server that keeps what it receives. */
export interface SmtpReceiver {
  readonly url: string;
  readonly received: readonly ReceivedMail[];
  /** The command lines of all its clients. */
  readonly commands: readonly string[];
  /** The next mail that was not asked for yet. */
  next(): Promise<ReceivedMail>;
  close(): Promise<void>;
}

const ADDRESS = /<([^>]*)>/;

/** Starts a receiver on a free port of this machine. */
export async function startSmtpReceiver(): Promise<SmtpReceiver> {
  const received: ReceivedMail[] = [];
  const commands: string[] = [];
  const waiting: ((mail: ReceivedMail) => void)[] = [];
  let taken = 0;
  const server = createServer((socket) =>
    converse(socket, commands, (mail) => {
      received.push(mail);
      const wants = waiting.shift();
      if (wants === undefined) return;
      taken += 1;
      wants(mail);
    }),
  );
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the receiver has no port');
  return {
    url: `smtp://127.0.0.1:${address.port}`,
    received,
    commands,
    next() {
      const mail = received[taken];
      if (mail === undefined) return new Promise((give) => waiting.push(give));
      taken += 1;
      return Promise.resolve(mail);
    },
    close: () => new Promise((closed) => server.close(() => closed())),
  };
}

function converse(socket: Socket, commands: string[], onMail: (mail: ReceivedMail) => void): void {
  const say = (line: string) => socket.write(`${line}\r\n`);
  let unread = '';
  let from = '';
  let to: string[] = [];
  let is_data = false;
  socket.setEncoding('utf8');
  socket.on('error', () => socket.destroy());
  say('220 test');
  socket.on('data', (chunk) => {
    unread += chunk;
    while (true) {
      const end = unread.indexOf(is_data ? '\r\n.\r\n' : '\r\n');
      if (end < 0) return;
      const part = unread.slice(0, end);
      unread = unread.slice(end + (is_data ? 5 : 2));
      if (is_data) {
        is_data = false;
        say('250 taken');
        onMail({ from, to, ...parsed(part) });
        to = [];
        continue;
      }
      commands.push(part);
      const command = part.slice(0, 4).toUpperCase();
      if (command === 'MAIL') from = ADDRESS.exec(part)?.[1] ?? '';
      if (command === 'RCPT') to.push(ADDRESS.exec(part)?.[1] ?? '');
      if (command === 'DATA') {
        is_data = true;
        say('354 go on');
      } else if (command === 'QUIT') {
        say('221 bye');
        socket.end();
      } else if (command === 'STAR') say('502 no TLS');
      else if (command === 'EHLO') say('250-test\r\n250 AUTH PLAIN');
      else if (command === 'AUTH') say('235 ok');
      else say('250 ok');
    }
  });
}

function parsed(data: string): Pick<ReceivedMail, 'headers' | 'text'> {
  const end = data.indexOf('\r\n\r\n');
  const lines = data
    .slice(0, end)
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n');
  const headers = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  );
  const body = data.slice(end + 4).replaceAll('\r\n', '\n');
  return {
    headers,
    text: headers.get('content-transfer-encoding') === 'quoted-printable' ? unquoted(body) : body,
  };
}

function unquoted(text: string): string {
  const bytes = text
    .replaceAll('=\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
