/** The order of names for people: layer.2 before layer.10. */
export const naturally = new Intl.Collator("en", { numeric: true }).compare;
