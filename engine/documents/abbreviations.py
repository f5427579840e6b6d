"""Abbreviations with a full stop, and words that begin sentences, in the languages that have such.

One table serves all languages: a text need not say which is its own, and may mix several. An entry in lower
case stands for either case ("fig", "Fig"), one with a capital only for that ("Gen. Hart", "a gen. rule").
Left out is what also ends sentences as a word of some language ("ill", "ten", "mind").
"""

import re
from functools import lru_cache


def entries(*lines: str) -> frozenset[str]:
    """Return the words of several lines."""
    return frozenset(" ".join(lines).split())


# Titles before names, and abbreviations that introduce what follows: no sentence ends after them.
NEVER_LAST = entries(
    "Adm Brig Capt Cmdr Col Cpl Dr Fr Gen Gov Hon Lt Maj Messrs Mr Mrs Ms Msgr Pres Prof Rep Rev Sen Sgt",
    "Supt EE approx cf e.g i.e viz vs",
    # German, Romance and Scandinavian languages, Dutch, Slavic languages, Turkish, Greek, Hindi, Bengali
    "Hr Hrn Hl Frl Dipl Tit bzgl bzw d.h evtl ggf inkl insb vgl z.b zzgl M MM Mgr p.ex avv dott geom sig",
    "sigg ing p.es exmo excmo cnel gral p.ej sra sres srta dra Ud Uds profa prof dr bijv d.w.z dhr mevr",
    "bl.a dvs f.eks fx jf kl skt t.ex np tzn tj lic napr např zvl örn акад напр проф т.е т.н ул βλ δηλ κ κα",
    "ul dl dna ifj özv вул ir drs ks hz sv maks mudr judr nar",
    "mme mmes mlle pl esim καθ δρ π.χ डॉ प्रो पं श्री रु सं ডা ড মো",
)
# Months, days, and words that may end sentences too: abbreviations only before a number.
BEFORE_NUMBERS = entries(
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thur Thurs Fri Sat Sun Mo Di Mi",
    "Do Sa So jan feb apr jun jul aug sept oct nov okt dez mrz janv févr avr juil déc ene abr ago dic giu",
    "lug ott fev янв февр апр авг сент окт нояб дек ιαν φεβρ απρ αυγ σεπτ οκτ νοε δεκ art arts cap est ex",
    "ext no nos nr num par rep tab min max kb ok ust lgs παρ dec des stycz lut kwi cze lip sie wrz paź lis",
    "gru grud oca şub nis haz tem ağu eyl eki kas ara yak mad fık şek storg ian iun iul cca alin Rp Ps січ",
    "лют бер кві чер лип сер вер жов лис гру бл буд",
)
# A sentence ends after these only before one of the words that begin sentences.
ABBREVIATIONS = entries(
    "al anon Assn Ave Blvd Bros ca ch chap Co Corp Ct dept ed eds eq eqs etc fig figs Ft Inc incl jr Ltd Mt",
    "op pp Rd rev sec sect Sq sr St st Ste tel univ vol vols a.d a.m b.a b.c d.c e.u m.a m.d p.m ph.d u.k",
    "u.n u.s",
    # German
    "Abb Abs abzgl allg Anm Aufl Bd Bde Bez bes betr Chr dgl ebd ehem einschl engl entspr etw ev Fa Fam ff",
    "Fn frz geb gegr gem gest gez griech Hbf Hrsg hrsg Ing ital Jg Jh Kap kath kfm lat Lkr lt mdl mind Mio",
    "Mrd Nrn od österr o.ä Pers Pfr Pkt Prov rd röm russ s.o s.u sog sogen Std Str stellv Tel Tsd u.a u.ä",
    "u.u urspr usf usw v.a verh versch vorm wg wiss Ziff z.t z.z",
    # French, Spanish, Portuguese, Italian
    "apr av bd coll dép éd env fasc hab pag suppl tél trad j.c l.c s.a aprox apdo avda cía depto ee.uu ej",
    "gob hnos ibid izq ltda máx mín núm núms pág págs pdte prov pta ptas tfno tlf vda a.c n.e cel gen",
    "máq séc cfr ecc ediz pagg pgg prot rag.ra segg sig.ra s.p.a s.r.l tav voll",
    # Dutch, Danish, Norwegian, Swedish
    "afb blz enz evt jl nrs o.a vlg adr afd afs alm årh bl eksl ekskl e.kr f.kr fhv frk gl hhv hr inkl",
    "jfr kap kgl kr lign mdr medl mht mia mill mio m.fl m.m mv nuv omkr osv o.s.v pct pga pkt s.k stk tidl",
    "udg vedr",
    # Polish, Czech, Turkish
    "godz im inż itd itp mgr mies mjr płk poz rys str św tys woj atd č čl nám obr odst",
    "popř resp roč tř tzv bkz Cad Mah Sok vb mil mn milj Şti gen",
    # Russian, Ukrainian
    "бул вв вып гг гл гор гос гр др ж.д зав изд им ин и.о кв кн коп корп лат мин млн млрд н.э обл оз отд",
    "пер пос пр просп рис руб сб св сек см соотв ср ст стр табл тел т.д т.п тыс упр чел шт экз вул наприкл",
    "ін",
    # Greek
    "άρθρ αρ γρ εικ εκατ κεφ κ.ά κ.λπ κλπ κτλ λεωφ μ.μ μ.χ οδ π.μ σελ στ τηλ τόμ χιλ χλμ",
    # the names of English letters in Hindi, for initials
    "ए बी सी डी ई एफ जी एच आई जे के एल एम एन ओ पी आर एस टी यू वी",
)
# Words that often begin sentences, and are hardly ever names.
OPENERS = entries(
    "a after all although an and another any as at because before both but by during each even every few",
    "for from he her here his how however i if in instead is it its later many meanwhile most my no nobody",
    "not nothing now of on once one only or other our perhaps she since so some soon such than that the",
    "their then there therefore these they this those though through thus to today two under until we what",
    "when where whether which while who why with without yet you your",
    # German
    "aber alle als also am auch auf aus außerdem bei beide da dabei daher damit danach dann darum das dazu",
    "dem den der deren deshalb die dies diese dieser dieses doch dort du durch ein eine einem einen einer",
    "er erst es für gegen hier ich ihr ihre im ist jede jeder jedes jedoch kein keine man mit nach nachdem",
    "niemand noch nun nur ob oder ohne sein seine seit sie sind später trotz über um und unser unter viele",
    "vom von vor während warum was weil wenn wer wie wir wo zu zum zur zwischen",
    # French
    "après au aussi aux avant avec c ce cela celle celui cependant ces cet cette chaque comme dans de",
    "depuis des donc du elle elles en enfin ensuite entre et il ils j je l la le les leur leurs lorsque",
    "mais ni nous où par pendant plusieurs pour puis quand que qui sa sans selon ses si son sous sur tous",
    "tout toutes un une vers vous à",
    # Spanish, Portuguese, Italian
    "al algunos allí aunque cada con cuando desde después donde durante el él ella ellas ellos entonces era",
    "es esa ese eso esta está estas este esto estos fue ha había hasta hay hoy las lo los luego más",
    "mientras muchos muy nada nadie o os para pero por porque pues según ser sí sin sobre su sus también",
    "todo todos tras unas unos usted y ya ainda ao aos apenas assim até com como da das do dos é ela elas",
    "ele eles enquanto então essa esse foi há isso isto já mas na não nas nem nenhum nos nós onde ou pela",
    "pelo pois porém quem se sem seu sua só também um uma você alcuni alla alle allora anche ancora che chi",
    "ci così dal dalla dopo dove dunque egli esso gli infatti inoltre io lei loro lui ma molti nel nella",
    "nelle nessuno noi non ogni oggi per perché però poi prima quando quella quello questa queste questi",
    "questo qui sempre sono sul sulla suo tra tutti uno è",
    # Dutch, Danish, Norwegian, Swedish
    "daar daarna dat de deze dit door dus een er geen het hij hun ik maar met naar niet nu ook om onder op",
    "sinds toen uit van veel voor waar wat wij ze zij zijn af alle blandt den denne det dette efter eller",
    "et før han hans hun hvem hvor ifølge ikke ingen jeg med men når og også på siden som til under var ved",
    "vi att av där därför från gå hon här inte jag när och sedan",
    # Polish, Czech, Turkish
    "ale był była było być dla dziś gdy jak jeśli każdy lecz nie od oraz po potem przed przez są ta tak tam",
    "ten teraz też to tylko tu w więc wszyscy z za że ani bez bude by byl byla bylo což dále když kde každý",
    "která který místo než nyní pak pokud potom pro protože před při se ama ancak bir bu bunlar bunun çok",
    "apoi çünkü daha fakat gibi her hiç için ile ise kimse ne o ona onlar onun şimdi son sonra şu var ve",
    # Russian
    "а без более был была были было в вам вас ведь весь во вот все всё вы где да для до его ее её ему если",
    "есть ещё же за затем здесь и из или им их к как каждый когда который кто мне многие мы на над не нет",
    "ни но о об однако он она они оно от перед по под после потом поэтому при с сегодня со так также там",
    "теперь то тогда только тот тут ты у уже хотя часто через что чтобы эта эти это этот я",
    # Greek
    "αλλά αν αυτή αυτό αυτός για δεν είναι εκεί ένα ένας εδώ η ήταν θα και κανείς κατά με μετά μια μία ο οι",
    "όμως όπως όταν πού ποιος πριν σε στα στη στην στις στο στον στους τα τη την της τι τις το τον του τους",
    "των τότε τώρα",
)
# Of these, those that begin family names too, after an initial: "E. Le Roy", "J. De Witt".
PARTICLES = entries("al an d da das de del der des di do dos du e el l la las le les lo los o van y")

# German ordinals are numbers with a full stop: "im 2. Stock", "der 1. Preis", "am 3. Oktober".
BEFORE_ORDINALS = entries(
    "am beim das dem den der des die diesem diesen dieser im ins jede jedem jeden jeder jedes und vom zum",
    "zur bis ein eine einem einen einer eines kein keine keinen mein meine meinem meinen meiner dein deine",
    "deinem deinen sein seine seinem seinen seiner ihr ihre ihrem ihren ihrer unser unsere unserem unseren",
    "unserer euer eure",
)
MONTHS_AFTER_ORDINALS = entries(
    "januar jänner februar feber märz marts mars april mai maj juni juli august september oktober november",
    "december dezember desember jan feb febr mär mrz apr jun jul aug sep sept okt nov dez",
)

WORD_BREAK = re.compile(r"[.\-(\[\"'’“‘«»„]")
DOTTED = re.compile(r"\b(?:[^\W\d_]{1,2}\.[ \u00a0\u202f-]?){1,4}[^\W\d_]{1,2}$")  # "U.S", "z. B", "J.-C"
ROMAN = re.compile(r"[IVXL]{2,}|[VX]")
UNITS = frozenset("ghlmst")  # a number and one of these may end a sentence
NEXT_WORD = re.compile(r"[\"'“‘„«»(\[*_\u00a0\u202f]*([^\W\d_]++|[¿¡])(\.?)")
# A number, a date, or the end of a period ("Jan. – Mar.").
NEXT_NUMBER = re.compile(
    r"[-–&(]|(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? )?\d", re.IGNORECASE
)


# Lists repeat their marks.
@lru_cache(maxsize=10_000)
def is_of_word(before: str, after: str, is_lower: bool) -> bool:
    """Whether a full stop belongs to the word, number or initial before it, and ends no sentence."""
    words = before.split()
    word = WORD_BREAK.split(words[-1])[-1] if words else ""
    if not word:
        return False
    next_match = NEXT_WORD.match(after)
    following, stop = next_match.groups() if next_match else ("", "")
    opener = following.lower()
    begins_next = (opener in OPENERS and (not stop or len(opener) > 2)) or opener in {"¿", "¡"}
    is_number = word.isdecimal() or bool(ROMAN.fullmatch(word))
    if len(words) == 1 and (is_number or len(words[0].strip("([")) == 1):  # of an item in a list
        return True
    if is_number and word == words[-1]:
        return is_ordinal(words, following, begins_next)
    match = DOTTED.search(before[-16:].rstrip()) if len(word) <= 2 else None
    dotted = re.sub(r"[^\w.]", "", match.group()).lower() if match else ""
    if dotted in NEVER_LAST or is_entry(word, NEVER_LAST, is_lower):
        return True
    if dotted in ABBREVIATIONS or is_entry(word, ABBREVIATIONS, is_lower) or word.lower().endswith("str"):
        return not begins_next
    if len(word) == 1 and word.isalpha() and words[-1][-2:-1] not in {"'", "’"}:  # an initial, no "can't"
        is_unit = word in UNITS and words[-2:-1] and words[-2][-1].isdecimal() and after[0].isupper()
        return not is_unit and not (begins_next and opener not in PARTICLES)
    if is_entry(word, BEFORE_NUMBERS, is_lower):
        return bool(NEXT_NUMBER.match(after) or ROMAN.fullmatch(following))
    return False


def is_entry(word: str, table: frozenset[str], is_lower: bool) -> bool:
    """Whether a table holds a word, or the one that a text in lower case, or in capitals, writes so."""
    is_other_case = is_lower or word.isupper()
    return word in table or word.lower() in table or (is_other_case and word.capitalize() in table)


def is_ordinal(words: list[str], following: str, begins_next: bool) -> bool:
    """Whether the last of the words, a number, is an ordinal in German, or the day of a month."""
    is_date = following.lower() in MONTHS_AFTER_ORDINALS or following.startswith("Jahrhundert")
    if is_date and len(words[-1]) <= 2:
        return True
    before = words[-2].lower() if words[-3:-2] != ["I"] else ""  # "I am 12. Kim is 9."
    return before in BEFORE_ORDINALS and len(words[-1]) <= 3 and following[:1].isupper() and not begins_next
