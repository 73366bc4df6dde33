import { describe, expect, test } from 'bun:test';
import { wrongText } from '../../src/config/config-file.ts';
import {
  hiddenPassword,
  isPostgres,
  withoutPassword,
  withPassword,
} from '../../src/config/database-address.ts';
import { publicText } from '../../src/config/setting.ts';
import { settingOf } from '../../src/config/settings.ts';

const SECRET = 'p@ss word';
const ADDRESS = `postgres://tds:${encodeURIComponent(SECRET)}@db.example.com:5432/tds?sslmode=require`;

describe('the address of a database', () => {
  test('is that of the file in the data directory, or of PostgreSQL; what is neither is not quoted', () => {
    const { kind } = settingOf('database');
    for (const address of ['sqlite:', ADDRESS, 'postgresql://localhost/tds'])
      expect(kind.parse(address)).toBe(address);
    expect([isPostgres('sqlite:'), isPostgres(ADDRESS)]).toEqual([false, true]);
    for (const wrong of [
      `mysql://tds:${SECRET}@localhost/tds`,
      '/var/lib/tds',
      'sqlite:/var/lib/tds',
      // Where the password stands is not known without the two slashes.
      'postgres:secret',
      'postgres:/secret',
      'postgresql:tds:secret@localhost/tds',
    ]) {
      expect(isPostgres(wrong)).toBe(false);
      expect(wrongText(settingOf('database'), wrong)).toStartWith('cannot be this. It must be sqlite: ');
    }
  });

  test('is printed without its password, wherever that stands', () => {
    expect(publicText(settingOf('database'), ADDRESS)).toBe(
      'postgres://tds:********@db.example.com:5432/tds?sslmode=require',
    );
    const hidden = hiddenPassword(
      `postgres://db.example.com/tds?user=tds&password=${encodeURIComponent(SECRET)}`,
    );
    expect(new URL(hidden).searchParams.get('password')).toBe('********');
    expect(publicText(settingOf('database'), 'sqlite:')).toBe('sqlite:');
  });

  test('is written into files without its password, wherever that stands', () => {
    expect(withoutPassword(ADDRESS)).toBe('postgres://tds@db.example.com:5432/tds?sslmode=require');
    const parameter = `password=${encodeURIComponent(SECRET)}`;
    expect(withoutPassword(`postgres://tds@localhost/tds?${parameter}`)).toBe('postgres://tds@localhost/tds');
    const socket = 'postgres://tds@localhost/tds?path=/run/postgresql';
    expect(withoutPassword(socket)).toBe(socket);
  });

  test('takes a password that is given elsewhere only where it has none', () => {
    expect(new URL(withPassword('postgres://tds@localhost/tds', SECRET)).password).toBe('p%40ss%20word');
    expect(withPassword(ADDRESS, 'another')).toBe(ADDRESS);
    expect(withPassword('postgres://tds@localhost/tds', undefined)).toBe('postgres://tds@localhost/tds');
  });

  test.each(['100%x', 'a%41b', 'p@ss:/?#[]%'])(
    'takes the password %j as it is, whatever it holds',
    (password) => {
      const { password: written } = new URL(withPassword('postgres://tds@localhost/tds', password));
      expect(decodeURIComponent(written)).toBe(password);
    },
  );
});
