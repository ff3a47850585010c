export const main = () => ({ count: 10n });
