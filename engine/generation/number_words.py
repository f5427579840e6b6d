"""Number words and months of seven languages, and scales of some more.

Left out is what is a common word of another language: Spanish "once", Italian "due" and "sei", French "cent".
"""

SMALL = (
    "zero null zéro cero",
    "one eins first",
    "two zwei deux dos dois duas twee second",
    "three drei trois tres três tre drie third",
    "four vier quatre cuatro quatro quattro fourth",
    "five fünf cinq cinco cinque vijf fifth",
    "six sechs seis zes sixth",
    "seven sieben siete sette zeven seventh",
    "eight acht huit ocho oito otto eighth",
    "nine neun neuf nueve nove negen ninth",
    "ten zehn dix diez dez dieci tien tenth",
    "eleven elf onze undici eleventh",
    "twelve zwölf douze doce doze dodici twaalf twelfth dozen dutzend",
    "thirteen dreizehn treize trece treze tredici dertien",
    "fourteen vierzehn quatorze catorce catorze quattordici veertien",
    "fifteen fünfzehn quinze quince quindici vijftien",
    "sixteen sechzehn seize dieciséis dezesseis sedici zestien",
    "seventeen siebzehn diecisiete dezessete diciassette zeventien",
    "eighteen achtzehn dieciocho dezoito diciotto achttien",
    "nineteen neunzehn diecinueve dezenove diciannove negentien",
)
TENS = {
    20: "twenty zwanzig vingt veinte vinte venti twintig",
    30: "thirty dreißig dreissig trente treinta trinta trenta dertig",
    40: "forty vierzig quarante cuarenta quarenta quaranta veertig",
    50: "fifty fünfzig cinquante cincuenta cinquenta cinquanta vijftig",
    60: "sixty sechzig soixante sesenta sessenta sessanta zestig",
    70: "seventy siebzig setenta settanta zeventig",
    80: "eighty achtzig ochenta oitenta ottanta tachtig",
    90: "ninety neunzig noventa novanta negentig",
}
SCALES = {
    10**2: "hundred hundert cien ciento cento honderd",
    10**3: "thousand k tausend tsd mille mil mila duizend tusind tusen тыс тысяч тысячи 千",
    10**4: "万 萬",
    10**5: "lakh lakhs लाख",
    10**6: "million millions mio millionen millón millones milione milioni milhão milhões miljoen millioner "
    "miljoner млн миллион миллиона миллионов",
    10**7: "crore crores करोड़",
    10**8: "億 亿",
    10**9: "billion billions bn mrd milliarde milliarden milliard milliards miliardo miliardi bilhão bilhões "
    "miljard mia milliarder млрд миллиард миллиарда миллиардов",
    10**12: "trillion trillions billionen trilhão trilhões",
}
MONTHS = (
    "january jan januar janvier janv enero ene gennaio gen janeiro januari",
    "february feb februar février févr febrero febbraio febr fevereiro fev februari",
    "march mar märz mars marzo março maart marts mrz",
    "april apr avril avr abril abr aprile",
    "may mai mayo maggio mag maio mei maj",
    "june jun juni juin junio giugno giu junho",
    "july jul juli juillet juil julio luglio lug julho",
    "august aug août agosto ago augustus",
    "september sep sept septembre septiembre settembre setembro",
    "october oct oktober okt octobre octubre ottobre ott outubro",
    "november nov novembre noviembre novembro",
    "december dec dezember dez décembre déc diciembre dic dicembre dezembro",
)
