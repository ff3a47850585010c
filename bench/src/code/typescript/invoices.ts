// Invoices that are overdue, by customer, with what a reminder to each of them would say.
import { list_invoices, get_customer } from "mcp-clients/billing";
import type { Invoice__, Customer__ } from "./types";

interface Filter__ {
  readonly from: string;
  readonly to?: string;
  states: Array<"open" | "paid" | "void">;
  limit: number;
}

type ByCustomer__ = Map<string, { customer: Customer__; invoices: Invoice__[]; cents: number }>;
type Page__<T> = { items: T[]; next: string | null };

export enum Urgency__ {
  Low = "low",
  Middle = "middle",
  High = "high",
}

const DAY_MS__ = 24 * 60 * 60 * 1000;

function daysLate__(invoice: Invoice__, now: number = Date.now()): number {
  const due = Date.parse(invoice.dueAt as string);
  return Number.isNaN(due) ? 0 : Math.max(0, Math.floor((now - due) / DAY_MS__));
}

async function* pages__(filter: Filter__): AsyncGenerator<Invoice__[], void, undefined> {
  let cursor: string | null = null;
  do {
    const page: Page__<Invoice__> = await list_invoices({ ...filter, cursor: cursor ?? undefined });
    yield page.items;
    cursor = page.next;
  } while (cursor !== null);
}

export async function overdue__(filter: Filter__): Promise<ByCustomer__> {
  const found: ByCustomer__ = new Map();
  for await (const invoices of pages__(filter)) {
    for (const invoice of invoices.filter((own): own is Invoice__ => own.state === "open")) {
      if (daysLate__(invoice) === 0) continue;
      const known = found.get(invoice.customerId);
      if (known) {
        known.invoices.push(invoice);
        known.cents += invoice.cents;
        continue;
      }
      const customer = (await get_customer({ id: invoice.customerId })) satisfies Customer__;
      found.set(invoice.customerId, { customer, invoices: [invoice], cents: invoice.cents });
    }
  }
  return found;
}

export function reminder__({ customer, invoices, cents }: { customer: Customer__; invoices: Invoice__[]; cents: number }) {
  const worst = Math.max(...invoices.map((invoice) => daysLate__(invoice)));
  const urgency = worst > 60 ? Urgency__.High : worst > 30 ? Urgency__.Middle : Urgency__.Low;
  const lines = invoices.map((invoice) => `- ${invoice.number}: ${(invoice.cents / 100).toFixed(2)} ${invoice.currency}`);
  return {
    to: customer.email!,
    urgency,
    text: `Dear ${customer.name},\n\nthese invoices are open, ${(cents / 100).toFixed(2)} in all:\n${lines.join("\n")}\n`,
  };
}
