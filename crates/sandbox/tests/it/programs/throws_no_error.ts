export const main = () => {
  throw { code: 5, why: "because" };
};
