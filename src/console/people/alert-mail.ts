import { ALERT_PAGES, type AlertFormats, alertSentence, alertTitle } from '../../alerts/sentences.ts';
import { formatDollars } from '../../contract/money.ts';
import type { DueAlertMail } from '../../store/alert-records.ts';
import type { Links } from './links.ts';
import type { Mail } from './mail.ts';
import { mentioned } from './mails.ts';

/** Dollars with at least two decimals, and days of UTC, because the reader's time zone is not known. */
const FORMATS: AlertFormats = {
  money: (micros) => {
    const [whole, fraction = ''] = formatDollars(Math.abs(micros)).split('.');
    return `${micros < 0 ? '-' : ''}$${whole}.${fraction.replace(/0+$/, '').padEnd(2, '0')}`;
  },
  day: (time_ms) => `${new Date(time_ms).toISOString().slice(0, 10)} (UTC)`,
};

/**
 * Returns the mail of an alert. The names of the organization, the project and the key are in it as in an invitation, and
 * never in the subject.
 */
export function alertMail(alert: DueAlertMail, links: Links): Mail {
  const { id, user_id, organization_id, organization_name, subject_name, kind, email } = alert;
  const subject = alertTitle(alert, FORMATS);
  const about = kind.startsWith('key_') ? 'An API key' : 'A project';
  const organization = mentioned(organization_name);
  return {
    id: `alert-${id}-${user_id}@tds`,
    to: email,
    subject,
    text: `${subject}.

${alertSentence(alert, FORMATS, mentioned(subject_name) ?? about)}

${links.organization(organization_id, ALERT_PAGES[kind])}

You get this mail as a member of ${organization === null ? 'an organization' : `the organization ${organization}`}. You can turn these mails off in your account: ${links.account()}`,
  };
}
