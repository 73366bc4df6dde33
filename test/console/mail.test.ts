import { expect, test } from 'bun:test';
import { Links } from '../../src/console/people/links.ts';
import { printingMailer, smtpMailer } from '../../src/console/people/mail.ts';
import { invitationMail, resetMail } from '../../src/console/people/mails.ts';
import { startSmtpReceiver } from './smtp-receiver.ts';

const INVITATION = {
  organization_name: 'Analytical\u2003Engines é',
  inviter_name: 'Ada Lovelace',
  role: 'developer' as const,
  link: new Links(() => 'https://tds.example.com/').invitation('token-1'),
  days: 7,
};

test('a mail arrives at an SMTP server as plain text, at its one address', async () => {
  const smtp = await startSmtpReceiver();
  const mailer = smtpMailer(smtp.url, 'tds <tds@example.com>');
  await mailer.send(invitationMail('eve@example.com', INVITATION));
  const mail = await smtp.next();
  expect(mail).toMatchObject({ from: 'tds@example.com', to: ['eve@example.com'] });
  expect(mail.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(mail.text).toContain(
    'Ada Lovelace invites you to join the organization Analytical Engines é as developer.',
  );
  expect(mail.text).toContain('\nhttps://tds.example.com/console/invitation#token=token-1\n');
  mailer.close();
  await smtp.close();
});

test.each([
  'Free credit: https://evil.example',
  'www.evil.example',
  'evil。example',
  'a@evil.example',
  '//evil',
])('a name that a mail program could make a link of is in no mail: %s', (name) => {
  const given = { ...INVITATION, organization_name: name, inviter_name: name };
  const { subject, text } = invitationMail('eve@example.com', given);
  expect([subject.includes(name), text.includes(name), text.match(/evil/)]).toEqual([false, false, null]);
  expect(text).toStartWith('You are invited to join an organization as developer.');
});

test.each([
  ['Prize hotline 0800 / 123-456 now', null],
  ['Prize hotline 0800 (123) 456 now', 'the organization Prize hotline … now'],
  ['Call ١٢٣ ٤٥٦', 'the organization Call …'],
  ['Studio 7', 'the organization Studio 7'],
  ['x'.repeat(100), `the organization ${'x'.repeat(39)}… as`],
  ['evil\u200b.example', null],
  ['two\nlines', 'the organization two lines'],
  [null, null],
])('a name is mentioned on one line, cut, and without digits in a row: %s', (name, mentioned) => {
  const { text } = invitationMail('eve@example.com', { ...INVITATION, organization_name: name });
  expect(text).toContain(mentioned ?? 'Ada Lovelace invites you to join an organization as developer.');
  expect(text).not.toMatch(/[0-9٠-٩][^\n]?[0-9٠-٩](?!.*console)/);
});

test('a subject has no name that somebody chose', () => {
  const { subject } = invitationMail('eve@example.com', INVITATION);
  expect([subject.includes('Ada'), subject.includes('Engines')]).toEqual([false, false]);
});

test('an address is one, whatever it looks like, and no name adds a header', async () => {
  const smtp = await startSmtpReceiver();
  const mailer = smtpMailer(smtp.url, 'tds@example.com');
  const organization_name = 'Evil\r\nBcc: all@example.com';
  await mailer.send(invitationMail('"a,b"@example.com', { ...INVITATION, organization_name }));
  const mail = await smtp.next();
  expect(mail.to).toHaveLength(1);
  expect(mail.headers.has('bcc')).toBe(false);
  mailer.close();
  await smtp.close();
});

test('a mail and the password of the server wait for TLS, where the address of the server asks for it', async () => {
  const smtp = await startSmtpReceiver();
  const mailer = smtpMailer(`${smtp.url.replace('//', '//ada:secret@')}?requireTLS=true`, 'tds@example.com');
  await expect(mailer.send(resetMail('ada@example.com', 'https://tds.example.com/x'))).rejects.toMatchObject({
    name: 'MailNotSent',
    cause: { code: 'ETLS' },
  });
  expect(smtp.commands).toContain('STARTTLS');
  expect(smtp.commands.filter((line) => /^(AUTH|MAIL)/i.test(line))).toEqual([]);
  expect(smtp.received).toEqual([]);
  mailer.close();
  await smtp.close();
});

test('without a mail server a mail is printed as a block', async () => {
  const written: string[] = [];
  await printingMailer((text) => written.push(text)).send(
    resetMail('ada@example.com', 'https://tds.example.com/x'),
  );
  expect(written).toEqual([
    `
--- mail to ada@example.com
Subject: Set a new password

Open this link to set a new password:

https://tds.example.com/x

It works once, for one hour. If you did not ask for it, ignore this mail: your password stays as it is.
--- end of mail

`,
  ]);
});
