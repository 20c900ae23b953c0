/** The commonest of refusals: of a value that is not what it must be. */
import { OptError } from "./errors";
import { show } from "./show";

/**
 * Refuses a value: throws BAD_ARGUMENT, "`name` must be `rule`, got `value`.", unless `holds`. It takes words and no closures:
 * what each step or op asks would be garbage of each, and take the caches from what they compute.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function checkValue(
  holds: unknown,
  where: string,
  name: string,
  rule: string,
  value: unknown,
  advice = "",
): asserts holds {
  if (!holds) throw new OptError("BAD_ARGUMENT", where, `${name} must be ${rule}, got ${show(value)}.`, advice);
}
