/** Languages the diagnosis speaks. */
export const LANGUAGES = ['en', 'zh'] as const;
export type Language = (typeof LANGUAGES)[number];

/** One thing to say, in every language; `{name}` stands for a value. */
export type Phrase = Readonly<Record<Language, string>>;

/** The phrase in one language with its values filled in. A value that is missing is a fault of ours. */
export const say = (
  phrase: Phrase,
  language: Language,
  values: Readonly<Record<string, string | number>> = {},
): string =>
  phrase[language].replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`no value for {${name}} in "${phrase.en}"`);
    return String(value);
  });
