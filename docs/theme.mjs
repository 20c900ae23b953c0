/** What typedoc's own theme lacks: modules named as users import them, and a main landmark for screen readers. */
import { Converter, PageEvent, ReflectionKind } from "typedoc";

/** @param {import("typedoc").Application} app */
export function load(app) {
  // `core/src/schedules` is `@opt/core/schedules`.
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (_context, reflection) => {
    if (reflection.kind === ReflectionKind.Module)
      reflection.name = `@opt/${reflection.name.replace(/\/src(?=\/|$)/, "")}`;
  });
  app.renderer.on(PageEvent.END, (page) => {
    page.contents = page.contents?.replace('<div class="col-content">', '<div class="col-content" role="main">');
  });
}
