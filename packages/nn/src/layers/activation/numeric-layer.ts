/** Layers of which nothing but numbers is chosen. */
import { check, show } from "@opt/core";
import { Module } from "../../module/module";

export abstract class NumericLayer extends Module {
  /** @throws OptError BAD_ARGUMENT for a number that is NaN */
  constructor(where: string, numbers: Readonly<Record<string, number>>) {
    super();
    for (const [name, value] of Object.entries(numbers)) {
      const isNumber = typeof value === "number" && !Number.isNaN(value);
      check(isNumber, "BAD_ARGUMENT", where, () => `${name} must be a number, got ${show(value)}.`, "For example 1.");
    }
  }

  override describe(): string {
    const numbers = Object.entries(this).filter(([, value]) => typeof value === "number");
    return numbers.map(([name, value]) => `${name}=${value}`).join(", ");
  }
}
